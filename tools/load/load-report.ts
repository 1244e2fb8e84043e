/** Owns the report of a load as one page that needs nothing else: no script, no other host, in light and dark. */
import type { Counter, Measure } from './load-job.ts'
import type { LoadResult, Window } from './load-figures.ts'
import { failedPercent } from './expectations.ts'
import { machineOf, measureNames, ownWarning } from './load-summary.ts'
import type { Performed } from './perform-load.ts'
import { escaped } from '../escaped.ts'
import { plotOf, type PlotLine } from './svg-plot.ts'

export function reportOf(performed: Performed): string {
  const { target, startedAt, ms, wasStopped } = performed
  const warning = ownWarning(performed)
  const body = [
    `<h1>Load report</h1>`,
    `<p>${escaped(target)}<br>${escaped(startedAt)}, ${(ms / 1000).toFixed(0)} s${wasStopped ? ', stopped before its end' : ''}</p>`,
    warning === null ? '' : `<p class="warning">${escaped(warning)}</p>`,
    totalsOf(performed.result),
    verdictsOf(performed),
    quantilesOf(performed.result),
    errorsOf(performed.result),
    `<h2>Over time</h2>`,
    ...plotsOf(performed.result.windows),
    machine(),
  ]
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Load report</title><style>${style}</style></head><body>${body.join('\n')}</body></html>\n`
}

function totalsOf(result: LoadResult): string {
  const { counts, cpuSeconds, maxRssMb } = result
  const failed = failedPercent(result)
  const rows: readonly (readonly [string, string])[] = [
    ['Calls due', String(counts.due)],
    ['Answered', String(counts.answered)],
    ['Completed', `${counts.completed}, of which the service ended ${counts.endedByService}`],
    ['Failed', `${counts.failed}${failed === null ? '' : ` (${failed.toFixed(1)} %)`}`],
    ['Turns', String(counts.turns)],
    ['Packets sent and received', `${counts.packetsSent} and ${counts.packetsReceived}`],
    ['Packets lost, late', `${counts.packetsLost}, ${counts.packetsLate}`],
    ['CPU of the service', cpuSeconds === null ? 'nobody told' : `${cpuSeconds.toFixed(1)} s`],
    ['Memory of the service, at most', maxRssMb === null ? 'nobody told' : `${maxRssMb.toFixed(0)} MB`],
  ]
  return tableOf(['', ''], rows)
}

function verdictsOf({ verdicts, result: { unmet } }: Performed): string {
  const rows = [
    ...verdicts.map(({ text, got, met }) => [
      met ? 'kept' : 'broken',
      text,
      got === null ? 'not measured' : got.toFixed(2),
    ]),
    ...unmet.map((text) => ['broken', text, '']),
  ]
  return rows.length === 0 ? '' : `<h2>What was expected</h2>${tableOf(['', 'expected', 'got'], rows)}`
}

function quantilesOf({ measured }: LoadResult): string {
  const rows = (Object.keys(measureNames) as Measure[]).flatMap((measure) => {
    const got = measured[measure]
    if (!got) return []
    const { name, unit, says } = measureNames[measure]
    const figures = [got.p50, got.p90, got.p95, got.p99, got.max].map((value) =>
      value.toFixed(measure === 'mos' ? 2 : 1),
    )
    return [[`${name}${unit && ` (${unit})`}`, says, String(got.count), ...figures]]
  })
  return `<h2>Measured</h2>${tableOf(['', '', 'n', 'p50', 'p90', 'p95', 'p99', 'max'], rows)}`
}

function errorsOf({ errors }: LoadResult): string {
  if (errors.length === 0) return '<h2>Errors</h2><p>None.</p>'
  const most = Math.max(...errors.map(([, times]) => times))
  const rows = errors.map(
    ([kind, times]) =>
      `<tr><td>${escaped(kind)}</td><td class="figure">${times}</td><td class="bar"><i style="width:${((100 * times) / most).toFixed(1)}%"></i></td></tr>`,
  )
  return `<h2>Errors by kind</h2><table>${rows.join('')}</table>`
}

const plotted: readonly Measure[] = ['setUp', 'firstAudio', 'turn', 'jitter', 'loss', 'mos', 'loopDelay', 'startLate']

function plotsOf(windows: readonly Window[]): string[] {
  const counted = (counter: Counter): PlotLine['points'] =>
    windows.map(({ at, counts }) => ({ at, value: counts[counter] }))
  const of = (read: (window: Window) => number | null): PlotLine['points'] =>
    windows.map((window) => ({ at: window.at, value: read(window) }))
  const measuredPlots = plotted.map((measure) => {
    const { name, unit } = measureNames[measure]
    const line = (quantile: 'p50' | 'p95' | 'max', tone: number): PlotLine => ({
      name: quantile,
      tone,
      points: of(({ measured }) => measured[measure]?.[quantile] ?? null),
    })
    return plotOf(name, unit, [line('p50', 1), line('p95', 2), line('max', 3)])
  })
  return [
    plotOf('Calls', '', [
      { name: 'running', tone: 1, points: counted('running') },
      { name: 'begun', tone: 4, points: counted('due') },
      { name: 'failed', tone: 3, points: counted('failed') },
    ]),
    ...measuredPlots,
    plotOf('Packets of the agent', '', [
      { name: 'late', tone: 2, points: counted('packetsLate') },
      { name: 'lost', tone: 3, points: counted('packetsLost') },
    ]),
    plotOf('Errors', '', [{ name: 'errors', tone: 3, points: of(({ errors }) => errors) }]),
    plotOf('CPU of the service', '% of a core', [{ name: 'CPU', tone: 1, points: of(({ cpuPercent }) => cpuPercent) }]),
    plotOf('Memory of the service', 'MB', [{ name: 'RSS', tone: 1, points: of(({ rssMb }) => rssMb) }]),
  ]
}

function machine(): string {
  const { node, cpu, cores, memoryMb, system } = machineOf()
  return `<h2>The machine of the load</h2><p>${escaped(`${cpu}, ${cores} cores, ${memoryMb} MB, ${system}, Node ${node}`)}</p>`
}

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (row: readonly string[], kind: 'td' | 'th'): string =>
    row.map((cell) => `<${kind}${/^[-\d.]+$/.test(cell) ? ' class="figure"' : ''}>${escaped(cell)}</${kind}>`).join('')
  const headRow = head.every((name) => name === '') ? '' : `<tr>${cells(head, 'th')}</tr>`
  return `<table>${headRow}${rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('')}</table>`
}

const style = `
:root { color-scheme: light dark; --ink: light-dark(#1b1f24, #e6e8eb); --paper: light-dark(#fff, #14171a); --faint: light-dark(#d7dbe0, #33393f);
  --t1: light-dark(#1f6feb, #6cb2ff); --t2: light-dark(#b35900, #ffb057); --t3: light-dark(#c1272d, #ff7b81); --t4: light-dark(#1a7f37, #5fd07f); --t5: light-dark(#7a3fc4, #c49bff) }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 0.5rem 0 } td, th { padding: 0.15rem 0.7rem 0.15rem 0; text-align: left; border-bottom: 1px solid var(--faint) }
.figure { text-align: right; font-variant-numeric: tabular-nums } .warning { border-left: 4px solid var(--t2); padding-left: 0.8rem }
figure { margin: 1rem 0 } figcaption { font-weight: 600 } svg { width: 100%; height: auto }
polyline { fill: none; stroke-width: 1.5 } .grid { stroke: var(--faint) } .mark { font-size: 11px; fill: var(--ink) } .end { text-anchor: end }
.key { font-weight: 400; margin-left: 0.8rem } .swatch { display: inline-block; width: 0.8rem; height: 0.2rem; margin-right: 0.3rem; vertical-align: middle }
.bar { width: 15rem } .bar i { display: block; height: 0.6rem; background: var(--t3) }
${[1, 2, 3, 4, 5].map((tone) => `polyline.tone${tone} { stroke: var(--t${tone}) } .dot.tone${tone} { fill: var(--t${tone}) } .swatch.tone${tone} { background: var(--t${tone}) }`).join('\n')}
`
