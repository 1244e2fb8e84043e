/** Owns the audit log: who changed what, when, and what came of it. */
import { h } from 'preact'
import { Cursors, pageAddress } from './cursors.js'
import { DayFilter, Filters, putIn, TextFilter } from './filters.js'
import { useActorNames } from './actor-names.js'
import { longTimeOf, timeOf } from './format.js'
import { Badge, Choice, Empty, Failure, Field, Loading, PageFrame, Table, Text } from './parts.js'
import { home, Link, usePlace } from './router.js'
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
  const nameOf = useActorNames(mayChange)
  if (!mayChange)
    return h(
      PageFrame,
      { title: 'Audit' },
      h(Empty, { title: 'Not for viewers' }, 'Operators and owners of the account see who changed what.'),
    )
  return h(PageFrame, { title: 'Audit', lead: 'Who changed what. Nobody can change or delete it here.' }, [
    h(AuditFilters, { query }),
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
              page.data.map((entry) => h(Row, { key: entry.id, entry, nameOf })),
            ),
            h(Cursors, { query, next: page.nextCursor }),
          ],
  ])
}

/** @param {{ query: URLSearchParams }} props */
const AuditFilters = ({ query }) =>
  h(Filters, null, [
    h(
      Field,
      { label: 'Who' },
      h(Choice, { value: query.get('actor') ?? '', options: actors, onChange: putIn(query)('actor') }),
    ),
    h(TextFilter, { label: 'What', name: 'action', query, placeholder: 'changeWorker' }),
    h(DayFilter, { label: 'From', name: 'from', query }),
    h(DayFilter, { label: 'To', name: 'to', query }),
  ])

/** @param {{ entry: AuditEntry, nameOf: (id: string) => string | undefined }} props */
function Row({ entry: { at, actor, action, result, errorCode, arguments: given, callIds }, nameOf }) {
  const who = actor.userId ?? actor.keyId ?? actor.clientId ?? ''
  const name = nameOf(who)
  const text = JSON.stringify(given, null, 2)
  return h('tr', null, [
    h('td', { 'data-label': 'When' }, h('time', { title: longTimeOf(at) }, timeOf(at))),
    h('td', { 'data-label': 'Who' }, [
      actor.kind.replace('_', ' '),
      who !== '' &&
        (name === undefined
          ? h('code', { class: 'soft', title: who }, ` ${who.slice(0, 13)}`)
          : h('span', { class: 'soft', title: who }, [' ', h(Text, null, name)])),
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
