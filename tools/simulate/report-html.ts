/** Owns the report of a suite: one file that needs nothing else, with the waveform of both sides for each run that failed. What was said is shown as text, whatever it is. Pure. */
import { frameMs } from '../../model/frame.ts'
import { escaped } from '../escaped.ts'
import type { Track } from './caller-leg.ts'
import { measureNames } from './scenario.ts'
import { measureText, type Difference, type Results } from './results.ts'
import type { Run } from './run-suite.ts'

const style = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid #ccc;padding:.25rem .6rem;text-align:left;vertical-align:top}
.failed{color:#b00020}.passed{color:#0a6b2d}svg{width:100%;height:auto;background:#fafafa;border:1px solid #ddd}
pre{white-space:pre-wrap;background:#f5f5f5;padding:.5rem}`

export function reportHtml(results: Results, runs: readonly Run[], differences: readonly Difference[] | null): string {
  const failed = runs.filter((run) => !run.passed)
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Simulated callers</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"><style>${style}</style></head><body>
<h1>Simulated callers</h1><p>${escaped(results.at)}, ${escaped(results.url)}, seeds ${escaped(results.seeds.join(', '))}</p>
${scenarioTable(results)}
<h2>Turn-taking</h2>${table(
    ['measure', 'value (events)'],
    measureNames.map((name) => [name, measureText(name, results.measures[name])]),
  )}
<h2>Since the last time</h2>${differencesHtml(differences)}
<h2>Runs that failed</h2>${failed.length === 0 ? '<p>None.</p>' : failed.map(failureHtml).join('\n')}
</body></html>
`
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  `<table><tr>${head.map((cell) => `<th>${escaped(cell)}</th>`).join('')}</tr>${rows
    .map((row) => `<tr>${row.map((cell) => `<td>${escaped(cell)}</td>`).join('')}</tr>`)
    .join('')}</table>`

const scenarioTable = ({ scenarios }: Results): string =>
  table(
    ['scenario', 'passed', 'pass^k'],
    scenarios.map(({ name, runs, passed, passAll }) => [
      name,
      `${passed} of ${runs}`,
      passAll.map((share, index) => `k=${index + 1}: ${share.toFixed(2)}`).join(', '),
    ]),
  )

function differencesHtml(differences: readonly Difference[] | null): string {
  if (!differences) return '<p>There was none before.</p>'
  if (differences.length === 0) return '<p>Nothing is other than it was.</p>'
  return table(
    ['', 'before', 'now'],
    differences.map(({ what, before, now }) => [what, before, now]),
  )
}

function failureHtml({ scenario, seed, callId, faults, track, transcript }: Run): string {
  const rows = faults.map(({ field, wanted, got, atMs }) => [
    field,
    atMs === null ? '' : `${(atMs / 1000).toFixed(1)} s`,
    wanted,
    got,
  ])
  const said = transcript.map(({ speaker, text }) => `${speaker}: ${text}`).join('\n')
  return `<h3 class="failed">${escaped(scenario)}, seed ${seed}</h3><p>${escaped(callId ?? 'no call')}</p>
${table(['field', 'at', 'wanted', 'got'], rows)}
${
  track
    ? waveform(
        track,
        faults.flatMap(({ atMs }) => (atMs === null ? [] : [atMs / frameMs])),
      )
    : ''
}
<pre>${escaped(said)}</pre>`
}

const width = 1200
const half = 70
const gap = 24
const loudest = 20_000
const colors = {
  say: '#1a66b3',
  interrupt: '#b35c00',
  backchannel: '#6b8e23',
  cough: '#888',
  aside: '#8b4789',
  keys: '#333',
}

/** The caller above, the agent below, what the caller did between them; a line where a fault is of a moment. */
function waveform({ caller, agent, marks }: Track, faults: readonly number[]): string {
  const ticks = Math.max(1, caller.length, agent.length)
  const x = (tick: number): number => Math.round((tick / ticks) * width * 10) / 10
  const side = (levels: readonly number[], middle: number, color: string): string => {
    const step = Math.max(1, Math.ceil(ticks / width))
    const bars: string[] = []
    for (let from = 0; from < levels.length; from += step) {
      const level = Math.max(0, ...levels.slice(from, from + step))
      const height = Math.round(Math.min(1, level / loudest) ** 0.5 * (half / 2) * 10) / 10
      if (height > 0) bars.push(`M${x(from)} ${middle - height}V${middle + height}`)
    }
    return `<path d="${bars.join('')}" stroke="${color}" fill="none"/>`
  }
  const label = (text: string, y: number): string => `<text x="4" y="${y}" font-size="11" fill="#555">${text}</text>`
  const acts = marks.map(
    ({ kind, text, from, to }) =>
      `<rect x="${x(from)}" y="${half + 4}" width="${Math.max(2, x(to - from))}" height="${gap - 8}" fill="${colors[kind]}"><title>${escaped(`${kind}: ${text}`)}</title></rect>`,
  )
  const seconds = Array.from({ length: Math.floor((ticks * frameMs) / 5_000) }, (_, index) => (index + 1) * 5)
  const scale = seconds.map(
    (second) =>
      `<text x="${x((second * 1000) / frameMs)}" y="${2 * half + gap + 12}" font-size="10" fill="#777">${second} s</text>`,
  )
  const lines = faults.map((tick) => `<path d="M${x(tick)} 0V${2 * half + gap}" stroke="#b00020" stroke-width="2"/>`)
  return `<svg viewBox="0 0 ${width} ${2 * half + gap + 16}" role="img" aria-label="waveform of both sides">${side(caller, half / 2, '#1a66b3')}${side(
    agent,
    half + gap + half / 2,
    '#0a6b2d',
  )}${acts.join('')}${lines.join('')}${scale.join('')}${label('caller', 12)}${label('agent', half + gap + 12)}</svg>`
}
