/** Owns one document: its text, whether it is used and by whom. */
import { h } from 'preact'
import { ask } from './ask.js'
import { AskedButton } from './confirm.js'
import { longTimeOf } from './format.js'
import { Form } from './form.js'
import { Awaited, Badge, PageFrame, Text } from './parts.js'
import { go, home, Link } from './router.js'
import { useHere } from './session.js'
import { useLoaded } from './use-loaded.js'
import { useWorkers } from './worker-names.js'

/** @typedef {import('./answers').Document} Document */

const writtenTypes = ['txt', 'mdoc']

/** @param {{ id: string }} props */
export function DocumentPage({ id }) {
  const { api, mayChange } = useHere()
  const address = `${api}/documents/${id}`
  const { value, error, reload } = useLoaded(address)
  const document = /** @type {Document | null} */ (value)
  const workers = useWorkers()
  if (document === null) return h(PageFrame, { title: 'Document' }, h(Awaited, { error, reload }))
  const isWritten = writtenTypes.includes(document.type)
  return h(
    PageFrame,
    {
      title: document.title,
      lead: [
        h(
          Badge,
          { tone: document.status === 'failed' ? 'bad' : document.status === 'queued' ? 'warn' : 'good' },
          document.status,
        ),
        ' ',
        h(Text, null, document.fileName),
        `, changed ${longTimeOf(document.updatedAt)}`,
      ],
      actions: [
        h(Link, { href: `${home}/documents`, class: 'button quiet' }, 'All documents'),
        mayChange &&
          h(
            AskedButton,
            {
              label: 'Delete',
              title: 'Delete this document?',
              action: 'Delete it',
              run: async () => {
                await ask(address, { method: 'DELETE' })
                go(`${home}/documents`)
              },
            },
            'Workers know nothing of it any more.',
          ),
      ],
    },
    [
      document.failedReason !== undefined &&
        h('p', { class: 'notice bad' }, `It could not be read: ${document.failedReason}`),
      h(
        'section',
        { class: 'card', 'aria-label': 'The document' },
        h(DocumentForm, { document, workers, address, saved: reload }),
      ),
      !isWritten &&
        document.text !== undefined &&
        h('details', { class: 'card' }, [
          h('summary', null, h('h2', null, 'What was read of it')),
          h('p', { class: 'words' }, h(Text, null, document.text.slice(0, 50_000))),
        ]),
    ],
  )
}

/** @param {{ document: Document, workers: readonly import('./answers').Worker[], address: string, saved: () => void }} props */
function DocumentForm({ document, workers, address, saved }) {
  const { mayChange } = useHere()
  const isWritten = writtenTypes.includes(document.type)
  const save = async (/** @type {import('./form.js').Filled} */ { fields, checks }) => {
    const workerIds = workers.filter((worker) => checks[worker.id]).map((worker) => worker.id)
    const text = isWritten && fields['text'] !== document.text ? { text: fields['text'] } : {}
    await ask(address, {
      method: 'PATCH',
      json: { title: fields['title'], isActive: checks['isActive'], workerIds, ...text },
    })
    saved()
  }
  return h(Form, {
    action: 'Save',
    done: 'Saved.',
    disabled: !mayChange,
    fields: [
      { name: 'title', label: 'Title', value: document.title, required: true },
      ...(isWritten
        ? [
            {
              name: 'text',
              label: 'Text',
              kind: /** @type {const} */ ('textarea'),
              rows: 18,
              value: document.text ?? '',
            },
          ]
        : []),
      { name: 'isActive', label: 'In use', kind: 'checkbox', checked: document.isActive },
      ...workers.map(({ id: workerId, name }) => ({
        name: workerId,
        label: `For ${name}`,
        kind: /** @type {const} */ ('checkbox'),
        checked: document.workerIds.includes(workerId),
      })),
    ],
    save,
  })
}
