/** Owns the audit log: who changed what, when, and what came of it. */
import { h } from 'preact'
import { Cursors, pageAddress } from './cursors.js'
import { longTimeOf, timeOf } from './format.js'
import { Badge, Choice, Empty, Failure, Field, Loading, PageFrame, Table, Text } from './parts.js'
import { go, home, Link, placeWith, usePlace } from './router.js'
import { useHere } from './session.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {import('./answers').AuditEntry} AuditEntry */

const actors = /** @type {const} */ ([
  ['', 'Everybody'],
  ['user', 'People'],
  ['api_key', 'Keys'],
  ['mcp_client', 'MCP clients'],
  ['operator', 'The operator'],
])
/** @type {Record<string, string>} */
const tones = { success: 'good', error: 'bad', unknown: 'warn' }

export function AuditPage() {
  const { api, mayChange } = useHere()
  const { query } = usePlace()
  const { value, error, isLoading, reload } = useLoaded(
    mayChange
      ? pageAddress(`${api}/audit-log`, query, ['actor', 'action', 'from', 'to'], { times: ['from', 'to'] })
      : null,
  )
  const page = /** @type {import('./answers').Page<AuditEntry> | null} */ (value)
  if (!mayChange)
    return h(
      PageFrame,
      { title: 'Audit' },
      h(Empty, { title: 'Not for viewers' }, 'Operators and owners of the account see who changed what.'),
    )
  return h(PageFrame, { title: 'Audit', lead: 'Who changed what. Nobody can change or delete it here.' }, [
    h(Filters, { query }),
    h(Failure, { error, retry: reload }),
    page === null
      ? !error && h(Loading, null)
      : page.data.length === 0
        ? h(
            Empty,
            { title: 'No entry' },
            'Every change by the API, by pages, by MCP clients and by the operator stands here.',
          )
        : [
            h(
              Table,
              {
                label: 'Audit log',
                class: `rows${isLoading ? ' stale' : ''}`,
                head: ['When', 'Who', 'What', 'Result', 'With'],
              },
              page.data.map((entry) => h(Row, { key: entry.id, entry })),
            ),
            h(Cursors, { query, next: page.nextCursor }),
          ],
  ])
}

/** @param {{ query: URLSearchParams }} props */
function Filters({ query }) {
  const put = (/** @type {string} */ name) => (/** @type {string} */ text) =>
    go(placeWith(query, { [name]: text, cursor: null }))
  const day = (/** @type {string} */ name) =>
    h('input', {
      type: 'date',
      value: query.get(name) ?? '',
      onChange: (/** @type {Event} */ event) => put(name)(/** @type {HTMLInputElement} */ (event.currentTarget).value),
    })
  return h(
    'form',
    {
      class: 'filters',
      role: 'search',
      'aria-label': 'Filters',
      onSubmit: (/** @type {Event} */ event) => event.preventDefault(),
    },
    [
      h(
        Field,
        { label: 'Who' },
        h(Choice, { value: query.get('actor') ?? '', options: actors, onChange: put('actor') }),
      ),
      h(
        Field,
        { label: 'What' },
        h('input', {
          value: query.get('action') ?? '',
          placeholder: 'changeWorker',
          onChange: (/** @type {Event} */ event) =>
            put('action')(/** @type {HTMLInputElement} */ (event.currentTarget).value.trim()),
        }),
      ),
      h(Field, { label: 'From' }, day('from')),
      h(Field, { label: 'To' }, day('to')),
    ],
  )
}

/** @param {{ entry: AuditEntry }} props */
function Row({ entry: { at, actor, action, result, errorCode, arguments: given, callIds } }) {
  const who = actor.userId ?? actor.keyId ?? actor.clientId ?? ''
  const text = JSON.stringify(given, null, 2)
  return h('tr', null, [
    h('td', { 'data-label': 'When' }, h('time', { title: longTimeOf(at) }, timeOf(at))),
    h('td', { 'data-label': 'Who' }, [
      actor.kind.replace('_', ' '),
      who !== '' && h('code', { class: 'soft', title: who }, ` ${who.slice(0, 13)}`),
    ]),
    h('td', { 'data-label': 'What' }, h('code', null, action)),
    h('td', { 'data-label': 'Result' }, [
      h(Badge, { tone: tones[result] ?? 'plain' }, result),
      errorCode !== undefined && h('span', { class: 'soft' }, ` ${errorCode}`),
    ]),
    h('td', { 'data-label': 'With' }, [
      text !== '{}' &&
        h('details', null, [
          h('summary', null, 'Arguments'),
          h('pre', { class: 'excerpt' }, h(Text, null, text.slice(0, 20_000))),
        ]),
      callIds.map((id) => h(Link, { key: id, href: `${home}/calls/${id}` }, 'the call')),
    ]),
  ])
}
