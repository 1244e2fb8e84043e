/** Owns what programs need: keys with what each may do, applications, limits, and what is kept how long. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { ask } from './ask.js'
import { Limits } from './account-limits.js'
import { Applications } from './applications.js'
import { AskedButton } from './confirm.js'
import { longTimeOf, timeOf } from './format.js'
import { Form } from './form.js'
import { Awaited, Badge, Empty, Fact, Facts, Failure, Loading, PageFrame, Section, Table, Text } from './parts.js'
import { useHere } from './session.js'
import { useStretch } from './stretch.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {import('./answers').ApiKey} ApiKey */

const scopes = /** @type {const} */ ([
  ['read', 'Read'],
  ['calls', 'Place and end calls'],
  ['manage', 'Configure and delete'],
])

export function DevelopersPage() {
  const { api, account, mayChange, isOwner } = useHere()
  return h(
    PageFrame,
    { title: 'Developers', lead: 'Keys for programs, applications of users, limits, and how long things are kept.' },
    [
      h(Section, { id: 'api', title: 'The API' }, [
        h(Facts, { label: 'The API' }, [
          h(Fact, { name: 'Address' }, h('code', null, `${location.origin}${api}`)),
          h(Fact, { name: 'Account' }, h('code', null, account.id)),
          h(Fact, { name: 'Reference' }, h('a', { href: '/docs' }, 'Every endpoint, with a try-out')),
          h(Fact, { name: 'Applications' }, h('a', { href: '/grants' }, 'Those that may act for you')),
        ]),
      ]),
      mayChange ? h(Keys, { isOwner }) : h('p', { class: 'notice warn' }, 'Keys are for operators and owners to see.'),
      mayChange && h(Applications, null),
      h(Limits, null),
      h(Kept, null),
    ],
  )
}

/** @param {{ isOwner: boolean }} props */
function Keys({ isOwner }) {
  const { api } = useHere()
  const { value, error, reload } = useLoaded(`${api}/api-keys`)
  const keys = /** @type {ApiKey[] | null} */ (value)
  const [made, setMade] = useState(/** @type {ApiKey | null} */ (null))
  const create = async (/** @type {import('./form.js').Filled} */ { fields: { name, expiresAt }, checks }) => {
    const wanted = scopes.map(([scope]) => scope).filter((scope) => checks[scope])
    if (wanted.length === 0) throw new Error('Choose what the key may do.')
    const json = { name, scopes: wanted, ...(expiresAt && { expiresAt: new Date(expiresAt).toISOString() }) }
    setMade(/** @type {ApiKey} */ (await ask(`${api}/api-keys`, { method: 'POST', json })))
    reload()
  }
  return [
    h(Section, { class: 'stack', id: 'keys-title', title: 'Keys' }, [
      h(Failure, { error, retry: reload }),
      made &&
        h('div', { class: 'notice good', role: 'status' }, [
          h('p', null, 'The key is made, and shown this once:'),
          h('p', null, h('code', null, made.key)),
        ]),
      keys === null
        ? !error && h(Loading, null)
        : keys.length === 0
          ? h(
              Empty,
              { title: 'No key yet' },
              isOwner
                ? 'Make one below for each program, with no more than it needs.'
                : 'An owner of the account makes them.',
            )
          : h(FoundKeys, { keys, changed: reload, isOwner }),
    ]),
    isOwner &&
      h(Section, { id: 'new', title: 'Make a key' }, [
        h(Form, {
          action: 'Make it',
          clears: true,
          fields: [
            { name: 'name', label: 'Name', required: true, hint: 'Which program has it' },
            { name: 'expiresAt', label: 'Good until', kind: 'datetime-local', hint: 'Empty: for ever' },
            ...scopes.map(([name, label]) => ({
              name,
              label,
              kind: /** @type {const} */ ('checkbox'),
              checked: name === 'read',
            })),
          ],
          save: create,
        }),
      ]),
  ]
}

/** @param {{ keys: ApiKey[], changed: () => void, isOwner: boolean }} props */
function FoundKeys({ keys, changed, isOwner }) {
  const { shown, pager } = useStretch(keys, 50)
  return [
    h(
      Table,
      { label: 'Keys', class: 'rows', head: ['Name', 'Begins with', 'May', 'Last used', 'State', ''] },
      shown.map((key) => h(KeyRow, { key: key.id, apiKey: key, changed, isOwner })),
    ),
    pager,
  ]
}

/** @param {ApiKey} key @returns {readonly [tone: string, words: string]} */
function stateOf({ revokedAt, expiresAt }) {
  if (revokedAt !== undefined) return ['plain', 'revoked']
  return expiresAt !== undefined && Date.parse(expiresAt) < Date.now() ? ['plain', 'expired'] : ['good', 'good']
}

/** @param {{ apiKey: ApiKey, changed: () => void, isOwner: boolean }} props */
function KeyRow({ apiKey, changed, isOwner }) {
  const { api } = useHere()
  const [tone, words] = stateOf(apiKey)
  return h('tr', null, [
    h('td', { 'data-label': 'Name' }, h(Text, null, apiKey.name)),
    h('td', { 'data-label': 'Begins with' }, h('code', null, `${apiKey.prefix}…`)),
    h('td', { 'data-label': 'May' }, apiKey.scopes.join(', ')),
    h(
      'td',
      { 'data-label': 'Last used' },
      h('time', { title: longTimeOf(apiKey.lastUsedAt) }, timeOf(apiKey.lastUsedAt)),
    ),
    h('td', { 'data-label': 'State' }, h(Badge, { tone }, words)),
    h('td', { class: 'number' }, [
      isOwner &&
        words === 'good' &&
        h(
          AskedButton,
          {
            label: 'Revoke',
            class: 'quiet small',
            name: `Revoke ${apiKey.name}`,
            title: `Revoke ${apiKey.name}?`,
            action: 'Revoke it',
            run: async () => {
              await ask(`${api}/api-keys/${apiKey.id}`, { method: 'DELETE' })
              changed()
            },
          },
          'Whoever has it is refused at once, and for good.',
        ),
    ]),
  ])
}

const kinds = /** @type {const} */ ([
  ['recordingDays', 'Recordings'],
  ['transcriptDays', 'Transcripts'],
  ['callDays', 'Calls'],
  ['auditLogDays', 'Audit log'],
])

function Kept() {
  const { api, mayChange } = useHere()
  const { value, error, reload } = useLoaded(`${api}/retention`)
  const retention = /** @type {import('./answers').Retention | null} */ (value)
  if (retention === null) return h(Awaited, { error, reload })
  return h(Section, { id: 'kept', title: 'Kept for (days)' }, [
    h(Form, {
      action: 'Save',
      done: 'Saved.',
      disabled: !mayChange,
      fields: kinds.map(([name, label]) => ({
        name,
        label,
        kind: /** @type {const} */ ('number'),
        value: String(retention[name] ?? ''),
        hint: 'Empty: for ever',
      })),
      save: async ({ fields }) => {
        await ask(`${api}/retention`, {
          method: 'PATCH',
          json: Object.fromEntries(
            Object.entries(fields).map(([name, days]) => [name, days === '' ? null : Number(days)]),
          ),
        })
        reload()
      },
    }),
  ])
}
