/** Owns what came of one round of simulated callers: scenarios with their pass^k, measures, and each run that failed with what was wanted and what was said. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { ask } from './ask.js'
import { AskedButton } from './confirm.js'
import { longTimeOf, msOf } from './format.js'
import { measureWords } from './measure-words.js'
import { Awaited, Badge, PageFrame, Section, Table, Text } from './parts.js'
import { go, home, Link } from './router.js'
import { useHere } from './session.js'
import { useStretch } from './stretch.js'
import { resultOf } from './simulations-page.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {import('./account-answers').Simulation} Simulation */
/** @typedef {Simulation['runs'][number]} Run */

/** @param {{ id: string }} props */
export function SimulationPage({ id }) {
  const { api, mayChange } = useHere()
  const address = `${api}/simulations/${id}`
  const { value, error, reload } = useLoaded(address)
  const simulation = /** @type {Simulation | null} */ (value)
  if (simulation === null) return h(PageFrame, { title: 'Simulation' }, h(Awaited, { error, reload }))
  const [tone, words] = resultOf(simulation)
  return h(
    PageFrame,
    {
      title: `Simulation of ${longTimeOf(simulation.ranAt)}`,
      lead: [h(Badge, { tone }, words), ' ', h(Text, null, simulation.target), `, ${seedsOf(simulation.seeds)}`],
      actions: [
        h(Link, { href: `${home}/simulations`, class: 'button quiet' }, 'All simulations'),
        mayChange &&
          h(
            AskedButton,
            {
              label: 'Delete',
              title: 'Delete these results?',
              action: 'Delete them',
              run: async () => {
                await ask(address, { method: 'DELETE' })
                go(`${home}/simulations`)
              },
            },
            'The calls that were made stay.',
          ),
      ],
    },
    [h(Scenarios, { simulation }), h(Runs, { simulation }), h(Measures, { simulation })],
  )
}

/** @param {readonly number[]} seeds */
function seedsOf(seeds) {
  if (seeds.length === 1) return `seed ${seeds[0]}`
  return `seeds ${seeds.slice(0, 10).join(', ')}${seeds.length > 10 ? ' …' : ''}`
}

/** @param {{ simulation: Simulation }} props */
const Scenarios = ({ simulation: { scenarios } }) =>
  h(Section, { class: 'stack', id: 'scenarios', title: 'Scenarios' }, [
    h(
      Table,
      { label: 'Scenarios', class: 'rows', head: ['Scenario', 'Passed', 'pass^k'] },
      scenarios.map(({ name, runs, passed, passAll }) =>
        h('tr', { key: name }, [
          h('td', { 'data-label': 'Scenario' }, h(Text, null, name)),
          h(
            'td',
            { 'data-label': 'Passed' },
            h(Badge, { tone: passed === runs ? 'good' : 'bad' }, `${passed} of ${runs}`),
          ),
          h(
            'td',
            { 'data-label': 'pass^k', title: 'How likely k runs all pass' },
            passAll.map((share, index) => `k=${index + 1}: ${share.toFixed(2)}`).join(', '),
          ),
        ]),
      ),
    ),
  ])

/** @param {{ simulation: Simulation }} props */
function Runs({ simulation: { runs, runCount } }) {
  const failed = runs.filter(({ passed }) => !passed)
  const passed = runs.filter((run) => run.passed && run.callId !== undefined)
  const shownFailed = useStretch(failed, 20)
  const shownPassed = useStretch(passed, 100)
  return h(Section, { class: 'stack', id: 'runs', title: failed.length === 0 ? 'No run failed' : 'Runs that failed' }, [
    shownFailed.shown.map((run) => h(FailedRun, { key: `${run.scenario} ${run.seed}`, run })),
    shownFailed.pager,
    runs.length < runCount && h('p', { class: 'soft' }, `${runs.length} of ${runCount} runs are told one by one.`),
    passed.length > 0 &&
      h('details', { class: 'card' }, [
        h('summary', null, passed.length === 1 ? 'One run that passed' : `${passed.length} runs that passed`),
        h(
          'ul',
          { class: 'plain-list' },
          shownPassed.shown.map(({ scenario, seed, callId }) =>
            h('li', { key: `${scenario} ${seed}` }, [
              h(Link, { href: `${home}/calls/${callId}` }, h(Text, null, scenario)),
              `, seed ${seed}`,
            ]),
          ),
        ),
        shownPassed.pager,
      ]),
  ])
}

/** @param {{ run: Run }} props */
function FailedRun({ run: { scenario, seed, callId, faults } }) {
  const [isOpen, setOpen] = useState(false)
  return h('article', { class: 'card stack' }, [
    h('h3', null, [h(Text, null, scenario), `, seed ${seed}`]),
    h(
      Table,
      {
        label: `What was other than wanted: ${scenario}, seed ${seed}`,
        class: 'rows',
        head: ['Field', 'At', 'Wanted', 'Got'],
      },
      faults.map(({ field, wanted, got, atMs }) =>
        h('tr', { key: field }, [
          h('td', { 'data-label': 'Field' }, h('code', null, h(Text, null, field))),
          h('td', { 'data-label': 'At' }, msOf(atMs)),
          h('td', { 'data-label': 'Wanted' }, h(Text, null, wanted)),
          h('td', { 'data-label': 'Got' }, h(Text, null, got)),
        ]),
      ),
    ),
    callId === undefined
      ? h('p', { class: 'soft' }, 'There was no call.')
      : [
          h(
            'p',
            null,
            h(Link, { href: `${home}/calls/${callId}`, class: 'button quiet' }, 'Its call: waveform, course'),
          ),
          h(
            'details',
            {
              onToggle: (/** @type {Event} */ event) =>
                setOpen(/** @type {HTMLDetailsElement} */ (event.currentTarget).open),
            },
            [h('summary', null, 'What was said'), isOpen && h(Said, { callId })],
          ),
        ],
  ])
}

/** @param {{ callId: string }} props */
function Said({ callId }) {
  const { api } = useHere()
  const { value, error, reload } = useLoaded(`${api}/phone-calls/${callId}/transcript`)
  const turns = /** @type {import('./answers').Turn[] | null} */ (value)
  if (turns === null) return h(Awaited, { error, reload })
  if (turns.length === 0) return h('p', { class: 'soft' }, 'Nothing, or it is not kept any more.')
  return h(
    'ol',
    { class: 'plain-list' },
    turns.map(({ speaker, text }, index) =>
      h('li', { key: index }, [h('strong', null, speaker === 'agent' ? 'Agent ' : 'Caller '), h(Text, null, text)]),
    ),
  )
}

/** @param {{ simulation: Simulation }} props */
const Measures = ({ simulation: { measures } }) =>
  h(Section, { class: 'stack', id: 'measures', title: 'Turn-taking' }, [
    h(
      Table,
      { label: 'Turn-taking', class: 'rows', head: ['Measure', 'Value', 'Of events'] },
      measures.map((measure) =>
        h('tr', { key: measure.name }, [
          h('td', { 'data-label': 'Measure' }, h(Text, null, measure.name)),
          h('td', { 'data-label': 'Value' }, h(Text, null, measureWords(measure))),
          h('td', { 'data-label': 'Of events', class: 'number' }, String(measure.events)),
        ]),
      ),
    ),
  ])
