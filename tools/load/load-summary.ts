/** Owns how a load reads in a terminal, and as JSON. */
import { arch, availableParallelism, cpus, release, totalmem } from 'node:os'
import process from 'node:process'
import { failedPercent } from './expectations.ts'
import type { Measure } from './load-job.ts'
import type { Performed } from './perform-load.ts'

/** In their order. */
export const measureNames: Readonly<
  Record<Measure, { readonly name: string; readonly unit: string; readonly says: string }>
> = {
  setUp: { name: 'Set-up', unit: 'ms', says: 'from when the call was due to its answer, or to its connection by web' },
  firstAudio: { name: 'First audio', unit: 'ms', says: 'from when the call was due to the first sound of the agent' },
  turn: { name: 'Turn latency', unit: 'ms', says: 'from the caller’s last word to the first sound of the agent' },
  jitter: { name: 'Jitter', unit: 'ms', says: 'of the agent’s packets at the end of a call (RFC 3550)' },
  loss: { name: 'Loss', unit: '%', says: 'of the agent’s packets of a call' },
  mos: { name: 'MOS estimate', unit: '', says: 'E-model of codec, loss, late frames and jitter; an estimate' },
  startLate: { name: 'Own lateness at start', unit: 'ms', says: 'how much later than due the load placed a call' },
  loopDelay: { name: 'Own event loop', unit: 'ms', says: 'what the processes of the load waited, by the second' },
}

/** Beyond this the load itself is late, ms. */
const ownLimit = 20

export function jsonOf(performed: Performed): unknown {
  const { result, verdicts, target, ms, startedAt, wasStopped } = performed
  return {
    parleyLoad: 1,
    startedAt,
    ms,
    target,
    wasStopped,
    machine: machineOf(),
    verdicts,
    warning: ownWarning(performed),
    ...result,
  }
}

export const machineOf = () => ({
  node: process.version,
  cpu: cpus()[0]?.model ?? 'unknown',
  cores: availableParallelism(),
  memoryMb: Math.round(totalmem() / 1e6),
  system: `${process.platform} ${release()} ${arch()}`,
})

/** Null: the load was in time itself. */
export function ownWarning({ result: { measured, counts } }: Performed): string | null {
  const [loop, start] = [measured.loopDelay?.p99 ?? 0, measured.startLate?.p99 ?? 0]
  const beats = counts.beats === 0 ? 0 : (100 * counts.beatsLate) / counts.beats
  if (loop <= ownLimit && start <= ownLimit && beats <= 1) return null
  return (
    `The load was late itself (event loop p99 ${loop.toFixed(0)} ms, starts p99 ${start.toFixed(0)} ms, ${beats.toFixed(1)} % of its beats): ` +
    'figures of the service are not to be believed within that. Use fewer calls, --processes, or another machine.'
  )
}

export function summaryOf(performed: Performed): string {
  const { result, verdicts, target, ms, wasStopped } = performed
  const { counts, errors, unmet, cpuSeconds, maxRssMb } = result
  const failed = failedPercent(result)
  const warning = ownWarning(performed)
  return [
    '',
    `${target}${wasStopped ? ' (stopped)' : ''}: ${(ms / 1000).toFixed(1)} s`,
    `calls: ${counts.due} due, ${counts.answered} answered, ${counts.completed} completed (${counts.endedByService} ended by the service), ` +
      `${counts.failed} failed${failed === null ? '' : ` (${failed.toFixed(1)} %)`}, ${counts.turns} turns`,
    `packets: ${counts.packetsSent} sent (${counts.packetsWithheld} withheld), ${counts.packetsReceived} received, ${counts.packetsLost} lost, ${counts.packetsLate} late`,
    ...(cpuSeconds === null
      ? []
      : [`the service: ${cpuSeconds.toFixed(1)} s of CPU, at most ${maxRssMb?.toFixed(0) ?? '?'} MB`]),
    '',
    ...tableOf(performed),
    ...(errors.length === 0 ? [] : ['', 'errors:', ...errors.map(([kind, times]) => `  ${times} × ${kind}`)]),
    ...(unmet.length === 0 ? [] : ['', 'not as recorded sessions expect:', ...unmet.map((text) => `  ${text}`)]),
    ...(verdicts.length === 0 ? [] : ['', ...verdicts.map(verdictLine)]),
    ...(warning === null ? [] : ['', warning]),
  ].join('\n')
}

const verdictLine = ({ text, got, met }: Performed['verdicts'][number]): string =>
  `${met ? 'kept  ' : 'BROKEN'} ${text}: ${got === null ? 'not measured' : got.toFixed(2)}`

function tableOf({ result: { measured } }: Performed): string[] {
  const head = ['', 'n', 'p50', 'p90', 'p95', 'p99', 'max']
  const rows = (Object.keys(measureNames) as Measure[]).flatMap((measure) => {
    const got = measured[measure]
    if (!got) return []
    const { name, unit } = measureNames[measure]
    const figures = [got.p50, got.p90, got.p95, got.p99, got.max].map((value) =>
      value.toFixed(measure === 'mos' ? 2 : 1),
    )
    return [[`${name}${unit && ` ${unit}`}`, String(got.count), ...figures]]
  })
  const widths = head.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]?.length ?? 0)))
  return [head, ...rows].map((row) =>
    row.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join('  '),
  )
}

/** Something that was expected did not hold, or nothing was reached at all. */
export const isGood = ({ result: { counts, unmet }, verdicts, wasStopped }: Performed): boolean =>
  verdicts.every(({ met }) => met) && unmet.length === 0 && (counts.answered > 0 || wasStopped)
