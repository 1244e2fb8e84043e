/** Owns the scripts of a worker: which it has, and the editor that tells what is wrong while one types. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { ask } from './ask.js'
import { timeOf, wordsOf } from './format.js'
import { Form } from './form.js'
import { Awaited, Badge, NoneYet, Section, Text } from './parts.js'
import { go, Link, placeWith, usePlace } from './router.js'
import { ScriptEditor } from './script-editor.js'
import { useHere } from './session.js'
import { useStretch } from './stretch.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {import('./answers').Document} Document */

const tags = /** @type {const} */ (['inbound_call_script', 'outbound_call_script'])
const first = '# Inbound\n\nsay "Good morning. How can I help you?"\n'

/** @param {{ workerId: string }} props */
export function WorkerScripts({ workerId }) {
  const { api, mayChange } = useHere()
  const { query } = usePlace()
  const { value, error, reload } = useLoaded(`${api}/documents?workerId=${workerId}`)
  const documents = /** @type {Document[] | null} */ (value)
  const scripts = documents?.filter(({ tagKeys }) => tags.some((tag) => tagKeys.includes(tag))) ?? []
  const { shown, pager } = useStretch(scripts, 50)
  if (documents === null) return h(Awaited, { error, reload })
  const open = query.get('script') ?? scripts[0]?.id ?? null
  return [
    scripts.length === 0
      ? h(
          NoneYet,
          { title: 'It has no script' },
          'A script says what the agent says and asks. Make one below; docs/call-scripts.md has the language. Without one, a hosted voice engine talks by its instructions alone.',
        )
      : h('div', { class: 'script-room' }, [
          h(
            'ul',
            { class: 'plain-list script-list', 'aria-label': 'Scripts' },
            shown.map((script) =>
              h(
                'li',
                { key: script.id },
                h(
                  Link,
                  {
                    href: placeWith(query, { script: script.id }),
                    'aria-current': script.id === open ? 'page' : undefined,
                    class: 'script-link',
                  },
                  [
                    h(Text, null, script.title),
                    h('span', { class: 'soft' }, ` ${directionsOf(script)}, ${timeOf(script.updatedAt)} `),
                    !script.isActive && h(Badge, { tone: 'warn' }, 'not in use'),
                  ],
                ),
              ),
            ),
          ),
          pager,
          open !== null && h(ScriptEditor, { key: open, documentId: open, saved: reload }),
        ]),
    mayChange &&
      h(Section, { id: 'new', title: 'Add a script' }, [
        h(NewScript, {
          workerId,
          made: (id) => {
            reload()
            go(placeWith(query, { script: id }))
          },
        }),
      ]),
  ]
}

/** @param {Document} script */
const directionsOf = ({ tagKeys }) =>
  tags
    .filter((tag) => tagKeys.includes(tag))
    .map((tag) => wordsOf(tag).split(' ')[0])
    .join(' and ')

/** @param {{ workerId: string, made: (id: string) => void }} props */
function NewScript({ workerId, made }) {
  const { api } = useHere()
  const [round, setRound] = useState(0)
  return h(Form, {
    key: round,
    action: 'Add it',
    fields: [
      { name: 'title', label: 'Title', required: true },
      {
        name: 'tag',
        label: 'For calls',
        kind: 'choice',
        value: tags[0],
        options: [
          [tags[0], 'that come in'],
          [tags[1], 'that go out'],
          ['both', 'both ways'],
        ],
      },
    ],
    save: async ({ fields: { title, tag } }) => {
      const tagKeys = tag === 'both' ? tags : [tag]
      const document = /** @type {Document} */ (
        await ask(`${api}/documents`, {
          method: 'POST',
          json: { title, text: first, tagKeys, workerIds: [workerId], isActive: false },
        })
      )
      setRound(round + 1)
      made(document.id)
    },
  })
}
