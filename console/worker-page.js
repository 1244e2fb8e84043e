/** Owns one worker: settings, scripts and knowledge, each at an address of its own. */
import { h } from 'preact'
import { Awaited, Badge, PageFrame, Text } from './parts.js'
import { home, Link, usePlace } from './router.js'
import { useHere } from './session.js'
import { useLoaded } from './use-loaded.js'
import { WorkerCall } from './worker-call.js'
import { WorkerKnowledge } from './worker-knowledge.js'
import { WorkerScripts } from './worker-scripts.js'
import { WorkerSettings } from './worker-settings.js'

const parts = /** @type {const} */ ([
  ['', 'Settings'],
  ['scripts', 'Scripts'],
  ['knowledge', 'Knowledge'],
])
const ofOperators = /** @type {const} */ ([...parts, ['call', 'Test call']])

/** @param {{ id: string }} props */
export function WorkerPage({ id }) {
  const { api, mayChange } = useHere()
  const { query } = usePlace()
  const { value, error, reload } = useLoaded(`${api}/workers/${id}`)
  const worker = /** @type {import('./answers').Worker | null} */ (value)
  if (worker === null) return h(PageFrame, { title: 'Worker' }, h(Awaited, { error, reload }))
  const part = query.get('part') ?? ''
  return h(
    PageFrame,
    {
      title: worker.name,
      lead: [
        h(Badge, { tone: worker.isActive ? 'good' : 'plain' }, worker.isActive ? 'on' : 'off'),
        ' ',
        h(Text, null, worker.language),
      ],
      actions: h(Link, { href: `${home}/calls?workerId=${id}`, class: 'button quiet' }, 'Its calls'),
    },
    [
      h(
        'nav',
        { class: 'tabs', 'aria-label': 'Of this worker' },
        (mayChange ? ofOperators : parts).map(([name, label]) =>
          h(
            Link,
            {
              key: name,
              href: name === '' ? location.pathname : `${location.pathname}?part=${name}`,
              'aria-current': name === part ? 'page' : undefined,
            },
            label,
          ),
        ),
      ),
      part === 'scripts'
        ? h(WorkerScripts, { workerId: id })
        : part === 'knowledge'
          ? h(WorkerKnowledge, { workerId: id })
          : part === 'call'
            ? h(WorkerCall, { workerId: id, key: id })
            : h(WorkerSettings, { worker, reload }),
    ],
  )
}
