/** Owns what the loaded service costs meanwhile: by its process on this machine, or by what it tells Prometheus. Read once a second, in bounded time. */
import { readFileSync } from 'node:fs'

export type Cost = {
  /** So far, s. */
  readonly cpuSeconds: number
  readonly rssBytes: number
}

export type CostReader = () => Promise<Cost | null>

const answeredWithin = 2_000
const maxText = 4 * 1024 * 1024
/** USER_HZ, which is 100 wherever Node runs on Linux. */
const ticksPerSecond = 100

/** Null: nobody there, or a system without /proc. The result of a process that ended is null. */
export const costOfProcess =
  (pid: number): CostReader =>
  () => {
    try {
      // The name may have spaces and brackets: fields are counted behind it. proc(5).
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const ticks = Number(fields[11]) + Number(fields[12])
      const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? []
      return Promise.resolve({ cpuSeconds: ticks / ticksPerSecond, rssBytes: Number(kilobytes ?? 0) * 1024 })
    } catch {
      return Promise.resolve(null)
    }
  }

export function costOfMetrics(url: string): CostReader {
  return async () => {
    const samples = await scrape(url).catch(() => null)
    const cpuSeconds = samples?.get('process_cpu_seconds_total')
    if (samples === null || cpuSeconds === undefined) return null
    return { cpuSeconds, rssBytes: samples.get('process_resident_memory_bytes') ?? 0 }
  }
}

/** Samples by name with their labels as they stand. Throws when nobody answers, or more than is believed. */
export async function scrape(url: string): Promise<Map<string, number>> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(answeredWithin), redirect: 'error' })
  if (!answer.ok)
    throw new Error(
      `it answers ${answer.status}${answer.status === 401 ? ', and no token is sent: --pid asks nobody' : ''}`,
    )
  const text = await answer.text()
  if (text.length > maxText) throw new Error(`it tells more than ${maxText} bytes`)
  const samples = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, name, value] = /^([A-Za-z_:][\w:]*(?:\{[^\n]*\})?) ([-+\w.]+)(?: \d+)?$/.exec(line.trim()) ?? []
    if (name !== undefined) samples.set(name, Number(value))
  }
  return samples
}
