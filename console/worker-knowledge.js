/** Owns the search box that finds what a worker would find when a caller asks. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { ask } from './ask.js'
import { Form } from './form.js'
import { Empty, Section, Text } from './parts.js'
import { home, Link } from './router.js'
import { useHere } from './session.js'

/** @typedef {import('./answers').Passage} Passage */

/** @param {{ workerId: string }} props */
export function WorkerKnowledge({ workerId }) {
  const { api } = useHere()
  const [found, setFound] = useState(/** @type {Passage[] | null} */ (null))
  const search = async (/** @type {import('./form.js').Filled} */ { fields }) => {
    const answer = await ask(`${api}/workers/${workerId}/knowledge/search`, {
      method: 'POST',
      json: { query: fields['query'] },
    })
    setFound(/** @type {{ passages: Passage[] }} */ (answer).passages)
  }
  return [
    h(Section, { id: 'search', title: 'What would it find?' }, [
      h(Form, {
        action: 'Search',
        fields: [{ name: 'query', label: 'As a caller would ask', required: true }],
        save: search,
      }),
    ]),
    found !== null &&
      (found.length === 0
        ? h(
            Empty,
            {
              title: 'It would find nothing',
              action: h(Link, { href: `${home}/documents`, class: 'button' }, 'To the documents'),
            },
            'No document says it that is in use and linked to this worker.',
          )
        : h(
            'ol',
            { class: 'passages', 'aria-label': 'Found' },
            found.map(({ documentId, title, text, score }, index) =>
              h('li', { class: 'card', key: index }, [
                h('p', null, [
                  h(Link, { href: `${home}/documents/${documentId}` }, h(Text, null, title)),
                  h('span', { class: 'soft' }, ` ${score.toFixed(3)}`),
                ]),
                h('p', { class: 'words' }, h(Text, null, text)),
              ]),
            ),
          )),
  ]
}
