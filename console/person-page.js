/** Owns one person: what is stored, and that all of it can be erased. */
import { h } from 'preact'
import { ask } from './ask.js'
import { AskedButton } from './confirm.js'
import { longTimeOf } from './format.js'
import { Form } from './form.js'
import { Awaited, PageFrame } from './parts.js'
import { go, home, Link } from './router.js'
import { useHere } from './session.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {import('./answers').Person} Person */

const editable = /** @type {const} */ ([
  ['firstName', 'First name'],
  ['lastName', 'Last name'],
  ['phoneNumber', 'Number'],
  ['email', 'E-mail address'],
  ['externalId', 'Your id'],
  ['companyName', 'Company'],
  ['language', 'Language'],
  ['city', 'City'],
  ['country', 'Country'],
])

/** @param {{ id: string }} props */
export function PersonPage({ id }) {
  const { api, mayChange } = useHere()
  const address = `${api}/persons/${id}`
  const { value, error, reload } = useLoaded(address)
  const person = /** @type {Person | null} */ (value)
  if (person === null) return h(PageFrame, { title: 'Person' }, h(Awaited, { error, reload }))
  const save = async (/** @type {import('./form.js').Filled} */ { fields }) => {
    // What is stored from before may be what nobody could enter now: it stays as long as it is not touched.
    const changed = [...editable.map(([name]) => name), /** @type {const} */ ('notes')]
      .map((name) => /** @type {const} */ ([name, fields[name] ?? '']))
      .filter(([name, text]) => text !== (person[name] ?? ''))
    const json = Object.fromEntries(changed.map(([name, text]) => [name, text === '' ? null : text]))
    await ask(address, { method: 'PATCH', json })
    reload()
  }
  return h(
    PageFrame,
    {
      title: `${person.firstName} ${person.lastName}`,
      lead: `${person.type.replace('phone_', '')}, stored ${longTimeOf(person.createdAt)}`,
      actions: [
        h(Link, { href: `${home}/persons`, class: 'button quiet' }, 'All persons'),
        mayChange &&
          h(
            AskedButton,
            {
              label: 'Erase',
              title: 'Erase this person?',
              action: 'Erase everything',
              run: async () => {
                await ask(`${address}/erase`, { method: 'POST' })
                go(`${home}/persons`)
              },
            },
            'Everything by which the person can be known goes for good: what is stored here, and their words, numbers and recordings in all calls.',
          ),
      ],
    },
    [
      h(
        'section',
        { class: 'card', 'aria-label': 'What is stored' },
        h(Form, {
          action: 'Save',
          done: 'Saved.',
          disabled: !mayChange,
          fields: [
            ...editable.map(([name, label]) => ({ name, label, value: person[name] ?? '' })),
            { name: 'notes', label: 'Notes', kind: /** @type {const} */ ('textarea'), value: person.notes ?? '' },
          ],
          save,
        }),
      ),
    ],
  )
}
