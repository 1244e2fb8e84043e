/**
 * Owns kill cycles: a process is killed with -9, and started again as soon as the calls that it had are another's. Three of four are such that run calls, the
 * fourth carries lines. One of each kind is left alone, so that there is somebody to take the calls.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { NodeId } from '../../model/ids.ts'
import type { Sql } from '../../store/sql.ts'
import type { ServiceProcess } from '../cluster/open-cluster.ts'
import type { Violation } from './judge.ts'
import { countLeft, nodeOfProcess } from './outside.ts'
import type { Random } from './random.ts'

/** What one kill did. */
export type Kill = {
  readonly name: string
  /** Calls and lines that the process had. */
  readonly had: number
  /** Ms until all of them were another's, or over. */
  readonly took: number
}

export type KillCycles = {
  isUp(process: ServiceProcess): boolean
  readonly kills: readonly Kill[]
  /** The next cycle; resolves when the process is being started again. */
  next(): Promise<void>
  /** Resolves when all processes are up, with what went wrong. */
  whole(): Promise<readonly Violation[]>
}

type Deps = {
  readonly sql: Sql
  readonly processes: readonly ServiceProcess[]
  readonly random: Random
}

const edgeEvery = 4
const lookEvery = 25
/** Ms. A machine that does other things takes its time; what nobody has taken by then nobody takes. */
const takenWithin = 30_000
const startedAgain = 5
const spareWithin = 300_000

const kindOf = ({ name }: ServiceProcess): string => name.replace(/-\d+$/, '')
const runsCalls = ({ roles }: ServiceProcess): boolean => roles.includes('actors')
const hasLines = ({ roles }: ServiceProcess): boolean => roles.includes('gateway') || roles.includes('sip')

export function createKillCycles({ sql, processes, random }: Deps): KillCycles {
  const up = new Set(processes)
  const kills: Kill[] = []
  const flaws: Violation[] = []
  const starting = new Set<Promise<void>>()
  const flaw = (text: string): void => void flaws.push({ invariant: 'processes', callId: null, text })

  /** Another one of its kind is up. */
  const isSpare = (one: ServiceProcess): boolean =>
    up.has(one) && processes.some((other) => other !== one && up.has(other) && kindOf(other) === kindOf(one))
  const start = async (one: ServiceProcess): Promise<void> => {
    for (let attempt = 1; ; attempt++)
      try {
        await one.start()
        return void up.add(one)
      } catch (error) {
        if (attempt < startedAgain) continue
        return flaw((error as Error).message)
      }
  }
  const startSoon = (one: ServiceProcess): void => {
    const started = start(one).finally(() => starting.delete(started))
    starting.add(started)
  }
  const lookForEnded = (): void => {
    for (const one of processes) {
      if (!up.has(one) || one.child()?.isOver() !== true) continue
      flaw(`${one.name} ended by itself`)
      up.delete(one)
      startSoon(one)
    }
  }
  const victim = async (): Promise<ServiceProcess> => {
    const deadline = performance.now() + spareWithin
    const isEdge = kills.length % edgeEvery === edgeEvery - 1 && processes.some(hasLines)
    for (;;) {
      lookForEnded()
      const spare = processes.filter((one) => (isEdge ? hasLines(one) : runsCalls(one)) && isSpare(one))
      if (spare.length > 0) return random.pick(spare)
      if (performance.now() > deadline) throw new Error('too few processes came up again: see their log files')
      await pause(lookEvery)
    }
  }
  const untilTaken = async (node: NodeId, name: string, killedAt: number): Promise<void> => {
    for (;;) {
      const left = await countLeft(sql, node)
      if (left === 0) return
      if (performance.now() - killedAt > takenWithin) return flaw(`nobody has taken ${left} calls and lines of ${name}`)
      await pause(lookEvery)
    }
  }
  return {
    isUp: (one) => up.has(one),
    kills,
    async next() {
      const one = await victim()
      const node = await nodeOfProcess(sql, one.child()?.pid ?? 0)
      const had = node === null ? 0 : await countLeft(sql, node)
      up.delete(one)
      one.child()?.signal('SIGKILL')
      const killedAt = performance.now()
      await one.child()?.ended
      if (node === null) flaw(`${one.name} has no session in the database`)
      else await untilTaken(node, one.name, killedAt)
      kills.push({ name: one.name, had, took: performance.now() - killedAt })
      startSoon(one)
    },
    async whole() {
      lookForEnded()
      while (starting.size > 0) await Promise.all(starting)
      return flaws
    },
  }
}
