/** Owns the list of what came of simulated callers. */
import { h } from 'preact'
import { Cursors, pageAddress } from './cursors.js'
import { longTimeOf, timeOf } from './format.js'
import { Badge, Failure, Loading, PageFrame, Table, Text } from './parts.js'
import { home, Link, usePlace } from './router.js'
import { useHere } from './session.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {import('./account-answers').SimulationSummary} SimulationSummary */

export function SimulationsPage() {
  const { api } = useHere()
  const { query } = usePlace()
  const { value, error, isLoading, reload } = useLoaded(pageAddress(`${api}/simulations`, query, []))
  const page = /** @type {import('./answers').Page<SimulationSummary> | null} */ (value)
  return h(
    PageFrame,
    { title: 'Simulations', lead: 'Callers that were played, and whether the workers did what was expected of them.' },
    [
      h(Failure, { error, retry: reload }),
      page === null
        ? !error && h(Loading, null)
        : page.data.length === 0
          ? h(NoSimulation, null)
          : [
              h(
                Table,
                {
                  label: 'Simulations',
                  class: `rows${isLoading ? ' stale' : ''}`,
                  head: ['When', 'Result', 'What was called'],
                },
                page.data.map((one) => h(Row, { key: one.id, one })),
              ),
              h(Cursors, { query, next: page.nextCursor }),
            ],
    ],
  )
}

const NoSimulation = () =>
  h('div', { class: 'empty' }, [
    h('h2', null, 'No simulation yet'),
    h('p', null, 'Have callers call a worker from a copy of the program, with a key that may read and place calls:'),
    h('pre', { class: 'excerpt' }, `npm run simulate -- --url ${location.origin} --key vk_…`),
    h('p', null, [
      'What comes of it is kept here. An owner makes the key under ',
      h(Link, { href: `${home}/developers` }, 'Developers'),
      '.',
    ]),
  ])

/** @param {SimulationSummary} one @returns {readonly [tone: string, words: string]} */
export const resultOf = ({ runCount, passedCount }) =>
  runCount === passedCount
    ? ['good', `all ${runCount} passed`]
    : ['bad', `${runCount - passedCount} of ${runCount} failed`]

/** @param {{ one: SimulationSummary }} props */
function Row({ one }) {
  const [tone, words] = resultOf(one)
  return h('tr', null, [
    h(
      'td',
      { 'data-label': 'When' },
      h(
        Link,
        { href: `${home}/simulations/${one.id}`, class: 'row-link', 'data-row': true },
        h('time', { title: longTimeOf(one.ranAt) }, timeOf(one.ranAt)),
      ),
    ),
    h('td', { 'data-label': 'Result' }, h(Badge, { tone }, words)),
    h('td', { 'data-label': 'What was called' }, h(Text, null, one.target)),
  ])
}
