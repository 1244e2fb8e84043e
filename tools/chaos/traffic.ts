/** Owns calls that come and go while processes are killed: so many at a time, by browser and telephone, both ways, one after the other ends. */
import { setTimeout as pause } from 'node:timers/promises'
import type { ServiceProcess } from '../cluster/open-cluster.ts'
import type { Caller, Callers, Way } from './callers.ts'
import { longestTalk } from './conversation.ts'
import { endOf } from './end-of-call.ts'
import type { Random } from './random.ts'
import type { Tenant } from './tenant.ts'

/** A call that came about, as its caller knows it. */
export type PassedCall = Pick<Caller, 'way' | 'number' | 'callId'> & {
  /** Null: it had to be hung up by us. */
  readonly how: string | null
}

export type Traffic = {
  readonly passed: readonly PassedCall[]
  talking(): number
  /** Attempts that came to no call: who was asked had just been killed. */
  unplaced(): number
  /** No further calls; resolves when those of now are over. */
  close(): Promise<void>
}

type Deps = {
  readonly callers: Callers
  readonly tenant: Tenant
  readonly processes: readonly ServiceProcess[]
  isUp(process: ServiceProcess): boolean
  readonly calls: number
  readonly turns: number
  readonly random: Random
}

const ways = ['sip in', 'web', 'sip out'] as const satisfies readonly Way[]
const retryAfter = 250
const placedWithin = 60_000
const patience = 45_000

export function openTraffic(deps: Deps): Traffic {
  const { turns, calls } = deps
  const passed: PassedCall[] = []
  const stopping = new AbortController()
  const { signal } = stopping
  let talking = 0
  let unplaced = 0

  async function follow(caller: Caller): Promise<void> {
    talking++
    const deadline = performance.now() + longestTalk(turns) + patience
    const end = await endOf(caller, deadline, deadline + longestTalk(turns))
    talking--
    caller.talk.stop()
    await caller.hangUp().catch(() => undefined)
    const { way, number, callId } = caller
    passed.push({ way, number, callId, how: end?.how ?? null })
  }
  async function lane(way: Way): Promise<void> {
    while (!signal.aborted) {
      const caller = await within(place(deps, way)).catch(() => null)
      if (caller) await follow(caller)
      else unplaced++
      if (!caller) await pause(retryAfter, undefined, { signal }).catch(() => undefined)
    }
  }
  const lanes = Array.from({ length: calls }, (_, index) => lane(ways[index % ways.length] ?? 'web'))
  return {
    passed,
    talking: () => talking,
    unplaced: () => unplaced,
    async close() {
      stopping.abort()
      await Promise.all(lanes)
    },
  }
}

/** Null: nobody has said anything by then. What comes about after it is hung up. */
async function within(placing: Promise<Caller>): Promise<Caller | null> {
  const late = new AbortController()
  const placed = await Promise.race([placing, pause(placedWithin, null, { signal: late.signal }).catch(() => null)])
  late.abort()
  if (placed === null)
    placing.then(
      (caller) => {
        caller.talk.stop()
        return caller.hangUp()
      },
      () => undefined,
    )
  return placed
}

/** By processes that are up, where there are any. */
function place({ callers, tenant, processes, isUp, random }: Deps, way: Way): Promise<Caller> {
  const of = (role: string): ServiceProcess[] => {
    const all = processes.filter(({ roles }) => roles.includes(role))
    const living = all.filter(isUp)
    return living.length > 0 ? living : all
  }
  const api = random.pick(of('api'))
  if (way === 'sip out') return callers.beCalled(api, tenant)
  if (way === 'web') {
    const [living, all] = [of('gateway'), processes.filter(({ roles }) => roles.includes('gateway'))]
    const first = random.pick(living)
    return callers.callByBrowser(api, [first, ...all.filter((other) => other !== first)], tenant)
  }
  const edges = of('sip').flatMap((one) => (one.sipPort === null ? [] : [{ ...one, sipPort: one.sipPort }]))
  return callers.callByPhone(random.pick(edges))
}
