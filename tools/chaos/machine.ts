/** Owns what the machine itself did to a round: how late this process was, and what the host gave of the processors to other machines. */
import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

export type MachineReport = {
  /** How late this process itself was at most, ms: no figure is better than that. */
  readonly ownDelay: number
  /** What the host gave of this machine's processors to others, from 0 to 1: who waits meanwhile does not wait for the service. */
  readonly stolen: number
}

const oneMillion = 1e6

/** From now until what this returns is called. */
export function watchMachine(): () => MachineReport {
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  const before = ticksNow()
  return () => {
    delay.disable()
    return { ownDelay: delay.max / oneMillion, stolen: stolenShare(before, ticksNow()) }
  }
}

/** Of all processors, in a unit of no interest. */
export type Ticks = { readonly all: number; readonly stolen: number }

/** user, nice, system, idle, iowait, irq, softirq, steal; what guests take stands in the first two once more. */
const counted = 8

/** `stat`: as /proc/stat has it (proc_stat(5)). */
export function ticksOf(stat: string): Ticks {
  const [, ...fields] = stat.slice(0, stat.indexOf('\n')).split(/\s+/)
  const ticks = fields.slice(0, counted).map(Number)
  return { all: ticks.reduce((sum, one) => sum + one, 0), stolen: ticks.at(counted - 1) ?? 0 }
}

const ticksNow = (): Ticks => ticksOf(readFileSync('/proc/stat', 'latin1'))

/** From 0 to 1. */
export const stolenShare = (before: Ticks, after: Ticks): number =>
  (after.stolen - before.stolen) / Math.max(1, after.all - before.all)
