/** Owns the documents: what workers know, whether it has been read, and where more is added. */
import { h } from 'preact'
import { ask } from './ask.js'
import { pageAddress } from './cursors.js'
import { timeOf, wordsOf } from './format.js'
import { Form } from './form.js'
import { Badge, Choice, Failure, Field, Loading, NoneYet, PageFrame, Section, Table, Text } from './parts.js'
import { go, home, Link, placeWith, usePlace } from './router.js'
import { useHere } from './session.js'
import { useLoaded } from './use-loaded.js'
import { useWorkers } from './worker-names.js'

/** @typedef {import('./answers').Document} Document */

const limit = 50

export function DocumentsPage() {
  const { api, mayChange } = useHere()
  const { query } = usePlace()
  const workers = useWorkers()
  const { value, error, reload } = useLoaded(pageAddress(`${api}/documents`, query, ['workerId'], { limit }), {
    every: 10_000,
  })
  const documents = /** @type {Document[] | null} */ (value)
  const last = documents !== null && documents.length === limit ? documents.at(-1)?.id : undefined
  return h(PageFrame, { title: 'Documents', lead: 'What workers know. Call scripts stand with their workers.' }, [
    h(
      'div',
      { class: 'filters' },
      h(
        Field,
        { label: 'Worker' },
        h(Choice, {
          value: query.get('workerId') ?? '',
          options: [['', 'Any worker'], ...workers.map(({ id, name }) => /** @type {const} */ ([id, name]))],
          onChange: (workerId) => go(placeWith(query, { workerId, cursor: null })),
        }),
      ),
    ),
    h(Failure, { error, retry: reload }),
    documents === null
      ? !error && h(Loading, null)
      : documents.length === 0
        ? h(
            NoneYet,
            { title: 'No document yet' },
            'Add a text or a file below, and link it to the workers that may use it.',
          )
        : h(
            Table,
            { label: 'Documents', class: 'rows', head: ['Title', 'File', 'State', 'Changed'] },
            documents.map((document) => h(Row, { key: document.id, document })),
          ),
    h('nav', { class: 'pager', 'aria-label': 'Pages of the list' }, [
      query.has('cursor') && h(Link, { href: placeWith(query, { cursor: null }), class: 'button quiet' }, 'First'),
      last !== undefined && h(Link, { href: placeWith(query, { cursor: last }), class: 'button' }, 'More'),
    ]),
    mayChange && h(Section, { id: 'new', title: 'Add a document' }, [h(NewDocument, { made: reload })]),
  ])
}

/** @param {Document} document @returns {readonly [tone: string, words: string]} */
const stateOf = ({ status, isActive }) =>
  status === 'failed'
    ? ['bad', 'failed']
    : status === 'queued'
      ? ['warn', 'is being read']
      : isActive
        ? ['good', 'in use']
        : ['plain', 'not in use']

/** @param {{ document: Document }} props */
function Row({ document }) {
  const [tone, words] = stateOf(document)
  return h('tr', null, [
    h('td', { 'data-label': 'Title' }, [
      h(
        Link,
        { href: `${home}/documents/${document.id}`, class: 'row-link', 'data-row': true },
        h(Text, null, document.title),
      ),
      document.tagKeys.length > 0 &&
        h('span', { class: 'soft' }, [' ', h(Text, null, document.tagKeys.map(wordsOf).join(', '))]),
    ]),
    h('td', { 'data-label': 'File' }, h(Text, null, document.fileName)),
    h('td', { 'data-label': 'State' }, [
      h(Badge, { tone }, words),
      document.failedReason !== undefined && h('span', { class: 'soft' }, ` ${wordsOf(document.failedReason)}`),
    ]),
    h('td', { 'data-label': 'Changed' }, timeOf(document.updatedAt)),
  ])
}

/** @param {{ made: () => void }} props */
function NewDocument({ made }) {
  const { api } = useHere()
  const workers = useWorkers()
  return h(Form, {
    action: 'Add',
    clears: true,
    done: 'Added. It is used as soon as it has been read.',
    fields: [
      { name: 'title', label: 'Title', required: true },
      {
        name: 'workerId',
        label: 'For',
        kind: 'choice',
        options: workers.map(({ id, name }) => /** @type {const} */ ([id, name])),
      },
      {
        name: 'file',
        label: 'File',
        kind: 'file',
        accept: '.txt,.md,.mdoc,.html,.docx,.pdf',
        hint: 'Text, Markdown, HTML, Word or PDF, 20 MB at most',
      },
      { name: 'text', label: 'Or the text itself', kind: 'textarea', rows: 6 },
    ],
    save: async ({ fields: { title = '', text = '', workerId = '' }, form }) => {
      const file = /** @type {HTMLInputElement} */ (form.elements.namedItem('file')).files?.[0]
      if (file) {
        const upload = new FormData()
        upload.set('file', file)
        upload.set('title', title)
        if (workerId !== '') upload.set('workerIds', workerId)
        await ask(`${api}/documents`, { method: 'POST', form: upload })
      } else if (text.trim() === '')
        throw new Error('There is nothing to add yet: choose a file, or write the text itself.')
      else
        await ask(`${api}/documents`, {
          method: 'POST',
          json: { title, text, workerIds: workerId === '' ? [] : [workerId] },
        })
      made()
    },
  })
}
