/** Owns the page of one call: what happened, on one time axis, and why it ended. */
import { h } from 'preact'
import { durationOf, longTimeOf, otherSideOf, statusOf, toneOf, wordsOf } from './format.js'
import { Badge, Fact, Facts, Failure, Loading, PageFrame, Text } from './parts.js'
import { home, Link } from './router.js'
import { useHere } from './session.js'
import { useLoaded } from './use-loaded.js'
import { useWorkerNames } from './worker-names.js'

/** @param {{ callId: string }} props */
export function CallPage({ callId }) {
  const { api } = useHere()
  const address = `${api}/phone-calls/${callId}`
  const { value, error, reload } = useLoaded(address)
  const call = /** @type {import('./answers').Call | null} */ (value)
  if (call === null)
    return h(PageFrame, { title: 'Call' }, error ? h(Failure, { error, retry: reload }) : h(Loading, null))
  return h(CallView, { call, address })
}

/** @param {{ call: import('./answers').Call, address: string }} props */
function CallView({ call, address }) {
  const nameOf = useWorkerNames()
  const { name, number } = otherSideOf(call)
  const status = statusOf(call)
  return h(
    PageFrame,
    {
      title: name,
      lead: [h(Badge, { tone: toneOf(status) }, wordsOf(status)), ' ', number !== '' && h(Text, null, number)],
      actions: h(Link, { href: `${home}/calls`, class: 'button quiet' }, 'All calls'),
    },
    [
      h(Facts, { label: 'The call' }, [
        h(Fact, { name: 'Worker' }, h(Text, null, nameOf(call.workerId))),
        h(Fact, { name: 'Direction' }, wordsOf(call.direction)),
        h(Fact, { name: 'Answered' }, longTimeOf(call.startedAt)),
        h(Fact, { name: 'Time' }, durationOf(call.duration)),
      ]),
      h(Transcript, { address }),
    ],
  )
}

/** @param {{ address: string }} props */
function Transcript({ address }) {
  const { value, error, reload } = useLoaded(`${address}/transcript`)
  const turns = /** @type {import('./answers').Turn[] | null} */ (value)
  if (turns === null) return error ? h(Failure, { error, retry: reload }) : h(Loading, null)
  return h(
    'ol',
    { class: 'turns', 'aria-label': 'Transcript' },
    turns.map(({ speaker, text, timestamps }, index) =>
      h('li', { key: index, class: `turn ${speaker}` }, [
        h('p', { class: 'turn-head' }, [
          h('span', { class: 'who' }, speaker === 'agent' ? 'Agent' : 'Caller'),
          ' ',
          timestamps.from,
        ]),
        h('p', { class: 'words' }, h(Text, null, text)),
      ]),
    ),
  )
}
