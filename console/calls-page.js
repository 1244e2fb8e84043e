/** Owns the search of calls: filters that live in the address, a page at a time. */
import { h } from 'preact'
import { Cursors, pageAddress } from './cursors.js'
import { DayFilter, Filters, putIn, TextFilter } from './filters.js'
import { durationOf, longTimeOf, otherSideOf, qualityToneOf, statusOf, timeOf, toneOf, wordsOf } from './format.js'
import { Badge, Choice, Empty, Failure, Field, Loading, PageFrame, Table, Text } from './parts.js'
import { home, Link, usePlace } from './router.js'
import { useHere } from './session.js'
import { useLoaded } from './use-loaded.js'
import { useWorkers } from './worker-names.js'

const statuses = /** @type {const} */ ([
  ['', 'Any state'],
  ['in_progress', 'In progress'],
  ['queued', 'Queued'],
  ['scheduled', 'Scheduled'],
  ['completed', 'Over'],
  ['failed', 'Failed'],
  ['no_answer', 'No answer'],
  ['busy', 'Busy'],
  ['voicemail', 'Voicemail'],
  ['canceled', 'Canceled'],
])
const directions = /** @type {const} */ ([
  ['', 'Both directions'],
  ['inbound', 'Inbound'],
  ['outbound', 'Outbound'],
])
const filters = ['q', 'status', 'direction', 'workerId', 'from', 'to']

export function CallsPage() {
  const { api } = useHere()
  const { query } = usePlace()
  const { value, error, isLoading, reload } = useLoaded(
    pageAddress(`${api}/phone-calls`, query, filters, { times: ['from', 'to'] }),
  )
  const page = /** @type {import('./answers').Page<import('./answers').Call> | null} */ (value)
  return h(
    PageFrame,
    { title: 'Calls', lead: 'Newest first. The address of this page keeps the filters: share it, or go back to it.' },
    [
      h(CallFilters, { query }),
      h(Failure, { error, retry: reload }),
      page === null ? !error && h(Loading, null) : h(Found, { page, query, isLoading }),
    ],
  )
}

/** @param {{ query: URLSearchParams }} props */
function CallFilters({ query }) {
  const workers = useWorkers()
  const put = putIn(query)
  const isFiltered = filters.some((name) => query.has(name))
  return h(Filters, null, [
    h(TextFilter, { label: 'Said in it', name: 'q', query, placeholder: 'Words of the transcript', wide: true }),
    h(
      Field,
      { label: 'State' },
      h(Choice, { value: query.get('status') ?? '', options: statuses, onChange: put('status') }),
    ),
    h(
      Field,
      { label: 'Direction' },
      h(Choice, { value: query.get('direction') ?? '', options: directions, onChange: put('direction') }),
    ),
    h(
      Field,
      { label: 'Worker' },
      h(Choice, {
        value: query.get('workerId') ?? '',
        options: [['', 'Any worker'], ...workers.map(({ id, name }) => /** @type {const} */ ([id, name]))],
        onChange: put('workerId'),
      }),
    ),
    h(DayFilter, { label: 'From', name: 'from', query }),
    h(DayFilter, { label: 'To', name: 'to', query }),
    isFiltered && h(Link, { href: location.pathname, class: 'button quiet' }, 'Clear'),
  ])
}

/** @param {{ page: import('./answers').Page<import('./answers').Call>, query: URLSearchParams, isLoading: boolean }} props */
function Found({ page, query, isLoading }) {
  const workers = useWorkers()
  if (page.data.length === 0)
    return filters.some((name) => query.has(name)) || query.has('cursor')
      ? h(
          Empty,
          { title: 'No call matches', action: h(Link, { href: location.pathname, class: 'button' }, 'Show all calls') },
          query.has('q')
            ? 'Calls that are over are found by whole words that were said, by all of them.'
            : 'Take a filter away, or choose other days.',
        )
      : h(
          Empty,
          { title: 'No calls yet', action: h('a', { href: '/docs', class: 'button' }, 'The reference of the API') },
          'Call a worker from the page at /, or place a call by POST …/phone-calls.',
        )
  return [
    h(
      Table,
      {
        label: 'Calls',
        class: `rows${isLoading ? ' stale' : ''}`,
        head: ['When', 'Who', 'Worker', 'State', 'Next action', 'Quality', 'Time'],
      },
      page.data.map((call) =>
        h(Row, { key: call.id, call, worker: workers.find(({ id }) => id === call.workerId)?.name ?? '' }),
      ),
    ),
    h(Cursors, { query, next: page.nextCursor }),
  ]
}

/** @param {{ call: import('./answers').Call, worker: string }} props */
function Row({ call, worker }) {
  const { name, number } = otherSideOf(call)
  const status = statusOf(call)
  const mos = call.quality?.mos ?? null
  const when = call.startedAt ?? call.endedAt ?? call.scheduledAt
  return h('tr', null, [
    h('td', { 'data-label': 'When' }, h('time', { title: longTimeOf(when) }, timeOf(when))),
    h('td', { 'data-label': 'Who' }, [
      h(Link, { href: `${home}/calls/${call.id}`, class: 'row-link', 'data-row': true }, h(Text, null, name)),
      h('span', { class: 'soft' }, [
        call.direction === 'inbound' ? ' called' : ' was called',
        number !== '' && [' ', h(Text, null, number)],
      ]),
    ]),
    h('td', { 'data-label': 'Worker' }, h(Text, null, worker)),
    h('td', { 'data-label': 'State' }, h(Badge, { tone: toneOf(status) }, wordsOf(status))),
    h(
      'td',
      { 'data-label': 'Next action' },
      call.nextAction ? h(Text, null, call.nextAction) : h('span', { class: 'soft' }, '–'),
    ),
    h(
      'td',
      { 'data-label': 'Quality', class: 'number' },
      mos === null ? h('span', { class: 'soft' }, '–') : h(Badge, { tone: qualityToneOf(mos) }, mos.toFixed(1)),
    ),
    h('td', { 'data-label': 'Time', class: 'number' }, durationOf(call.duration)),
  ])
}
