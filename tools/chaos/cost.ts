/** Owns what calls of a cluster cost, by role: CPU of its processes while they talk, set-up left out. */
import type { Cluster } from '../cluster/open-cluster.ts'
import { cpuOf } from './outside.ts'

/** Ms so far. */
type Cpu = Readonly<Record<string, number>>

/** Processes of the same roles together; database and bus by their names. */
export function cpuByRole({ processes, postgres, nats }: Cluster): Cpu {
  const taken: Record<string, number> = {}
  const add = (role: string, pid: number): void => void (taken[role] = (taken[role] ?? 0) + cpuOf(pid))
  for (const one of processes) add(one.name.replace(/-\d+$/, ''), one.child()?.pid ?? 0)
  for (const pid of postgres.pids()) add('postgres', pid)
  for (const server of nats) add('nats', server.pid() ?? 0)
  return taken
}

/** From now on. */
export function costOf(before: Cpu) {
  const since = performance.now()
  return {
    /** `ends`: when each call ended, by performance.now. A process that was started anew meanwhile counts from there on, and is told too low. */
    perCallSecond(after: Cpu, ends: readonly number[]): Readonly<Record<string, number>> {
      const seconds = ends.reduce((sum, end) => sum + Math.max(0, end - since), 0) / 1000
      const costs = Object.entries(after).map(([role, ms]) => [role, (ms - (before[role] ?? 0)) / Math.max(1, seconds)])
      return Object.fromEntries(costs) as Record<string, number>
    },
  }
}
