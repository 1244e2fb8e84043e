/** Owns the persons that are stored: found by name, number or e-mail address. */
import { h } from 'preact'
import { ask } from './ask.js'
import { Cursors, pageAddress } from './cursors.js'
import { Form } from './form.js'
import { Choice, Empty, Failure, Field, Loading, PageFrame, Section, Table, Text } from './parts.js'
import { go, home, Link, placeWith, usePlace } from './router.js'
import { useHere } from './session.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {import('./answers').Person} Person */

const types = /** @type {const} */ ([
  ['', 'Everybody'],
  ['customer', 'Customers'],
  ['lead', 'Leads'],
  ['phone_contact', 'Contacts'],
])

export function PersonsPage() {
  const { api, mayChange } = useHere()
  const { query } = usePlace()
  const { value, error, isLoading, reload } = useLoaded(pageAddress(`${api}/persons`, query, ['query', 'type']))
  const page = /** @type {import('./answers').Page<Person> | null} */ (value)
  const search = (/** @type {Event} */ event) => {
    event.preventDefault()
    const form = /** @type {HTMLFormElement} */ (event.currentTarget)
    const box = /** @type {HTMLInputElement} */ (form.elements.namedItem('query'))
    go(placeWith(query, { query: box.value, cursor: null }))
  }
  return h(PageFrame, { title: 'Persons', lead: 'Who called, who is called, and whom callers may be passed on to.' }, [
    h('form', { class: 'filters', role: 'search', onSubmit: search }, [
      h(
        Field,
        { label: 'Search', class: 'wide' },
        h('input', {
          type: 'search',
          name: 'query',
          defaultValue: query.get('query') ?? '',
          placeholder: 'Name, number, e-mail address',
        }),
      ),
      h(
        Field,
        { label: 'Kind' },
        h(Choice, {
          value: query.get('type') ?? '',
          options: types,
          onChange: (type) => go(placeWith(query, { type, cursor: null })),
        }),
      ),
      h('button', { type: 'submit', class: 'quiet' }, 'Search'),
    ]),
    h(Failure, { error, retry: reload }),
    page === null
      ? !error && h(Loading, null)
      : page.data.length === 0
        ? h(
            Empty,
            { title: query.has('query') || query.has('type') ? 'Nobody matches' : 'Nobody is stored yet' },
            'Persons come by themselves with the customer of a call; operators also add them here, or by POST …/persons.',
          )
        : [
            h(
              Table,
              {
                label: 'Persons',
                class: `rows${isLoading ? ' stale' : ''}`,
                head: ['Name', 'Number', 'E-mail', 'Kind', 'Tags'],
              },
              page.data.map((person) => h(Row, { key: person.id, person })),
            ),
            h(Cursors, { query, next: page.nextCursor }),
          ],
    mayChange && h(Section, { id: 'new', title: 'Add a person' }, [h(NewPerson, { made: reload })]),
  ])
}

/** @param {{ person: Person }} props */
const Row = ({ person: { id, type, firstName, lastName, phoneNumber, email, tags } }) =>
  h('tr', null, [
    h(
      'td',
      { 'data-label': 'Name' },
      h(
        Link,
        { href: `${home}/persons/${id}`, class: 'row-link', 'data-row': true },
        h(Text, null, `${firstName} ${lastName}`),
      ),
    ),
    h('td', { 'data-label': 'Number' }, h(Text, null, phoneNumber ?? '–')),
    h('td', { 'data-label': 'E-mail' }, h(Text, null, email ?? '–')),
    h('td', { 'data-label': 'Kind' }, type.replace('phone_', '')),
    h('td', { 'data-label': 'Tags' }, h(Text, null, tags.join(', '))),
  ])

/** @param {{ made: () => void }} props */
function NewPerson({ made }) {
  const { api } = useHere()
  return h(Form, {
    action: 'Add',
    clears: true,
    done: 'Added.',
    fields: [
      { name: 'firstName', label: 'First name', required: true },
      { name: 'lastName', label: 'Last name', required: true },
      { name: 'phoneNumber', label: 'Number' },
      { name: 'email', label: 'E-mail address', kind: 'email' },
      { name: 'type', label: 'Kind', kind: 'choice', value: 'customer', options: types.slice(1) },
    ],
    save: async ({ fields }) => {
      const json = Object.fromEntries(Object.entries(fields).filter(([, text]) => text !== ''))
      await ask(`${api}/persons`, { method: 'POST', json })
      made()
    },
  })
}
