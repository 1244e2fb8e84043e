/** Owns what must be gone when calls are over: work that is under way, and ports that processes hold. */
import { setTimeout as pause } from 'node:timers/promises'
import type { AccountId } from '../../model/ids.ts'
import type { Sql } from '../../store/sql.ts'
import type { ServiceProcess } from '../cluster/open-cluster.ts'
import type { Violation } from './judge.ts'
import { countPending, countUdpSockets } from './outside.ts'

const settleWithin = 30_000
const lookEvery = 250

/** Null when nothing of the account is under way any more; else what still is, after a while. */
export async function settled(sql: Sql, accountId: AccountId, within = settleWithin): Promise<string | null> {
  const deadline = performance.now() + within
  for (;;) {
    const pending = await countPending(sql, accountId).catch((error: Error) => error.message)
    const isText = typeof pending === 'string'
    if (!isText && pending.calls + pending.deliveries === 0) return null
    if (performance.now() > deadline)
      return isText ? pending : `${pending.calls} calls and ${pending.deliveries} deliveries are still under way`
    await pause(lookEvery)
  }
}

const countOf = (one: ServiceProcess): number | null => countUdpSockets(one.child()?.pid ?? 0)

/** Of each process, by its name: one that was started anew holds as many when it has no calls. */
export const socketsOf = (processes: readonly ServiceProcess[]) =>
  new Map(processes.map((one) => [one.name, countOf(one)] as const))

export async function leakedPorts(
  processes: readonly ServiceProcess[],
  before: ReturnType<typeof socketsOf>,
): Promise<Violation[]> {
  const leaksOf = () =>
    processes.flatMap((one) => {
      const [was, is] = [before.get(one.name), countOf(one)]
      return typeof was === 'number' && is !== null && is > was
        ? [`${one.name} holds ${is - was} UDP sockets more`]
        : []
    })
  const deadline = performance.now() + settleWithin
  while (leaksOf().length > 0 && performance.now() < deadline) await pause(lookEvery)
  return leaksOf().map((text) => ({ invariant: 'ports', callId: null, text }))
}
