/** Owns which faults there are, what each may cost the callers, and when it strikes whom: all of it follows from the seed. Pure. */
import { createRandom, type Random } from './random.ts'

/** Who is struck. `edge`: a process that has calls of its own by telephone or browser; `owner`: one that runs actors. */
type Target = 'owner' | 'edge' | 'postgres' | 'nats' | 'network' | 'disk' | 'clock' | 'none'

export type FaultKind = {
  readonly target: Target
  /** Ms from the blow until what was broken is mended: from, to. */
  readonly lasts: readonly [number, number]
  /** Ms by which a caller may wait longer than without a fault. */
  readonly mayWait: number
  /**
   * A line between two processes holds for as long as it lasts, and so many ms more. One whose leg and actor share a process does not notice. Absent:
   * none holds.
   */
  readonly holdsSplit?: number
  /** The sound of calls on the struck process is gone with it: such a call may end, but is told so, and its row ends in time. */
  readonly takesLegs?: true
}

const moment = [0, 0] as const
const second = 1_000

/** The names are those of `--faults`. */
export const faultKinds = {
  none: { target: 'none', lasts: moment, mayWait: 0 },
  'actor-kill': { target: 'owner', lasts: [4 * second, 8 * second], mayWait: 1_000, takesLegs: true },
  'actor-freeze': { target: 'owner', lasts: [6 * second, 9 * second], mayWait: 2_000, takesLegs: true },
  'actor-term': { target: 'owner', lasts: [4 * second, 8 * second], mayWait: 200 },
  'edge-kill': { target: 'edge', lasts: [4 * second, 8 * second], mayWait: 1_000, takesLegs: true },
  'edge-freeze': { target: 'edge', lasts: [2 * second, 4 * second], mayWait: 5_000, takesLegs: true },
  'edge-term': { target: 'edge', lasts: [4 * second, 8 * second], mayWait: 200 },
  'postgres-stop': { target: 'postgres', lasts: [6 * second, 12 * second], mayWait: 0 },
  'postgres-kill': { target: 'postgres', lasts: [2 * second, 6 * second], mayWait: 0 },
  'postgres-freeze': { target: 'postgres', lasts: [6 * second, 12 * second], mayWait: 0 },
  'postgres-slow': { target: 'postgres', lasts: [8 * second, 12 * second], mayWait: 0 },
  'nats-stop': { target: 'nats', lasts: [6 * second, 12 * second], mayWait: 0, holdsSplit: 1_000 },
  'nats-kill': { target: 'nats', lasts: [2 * second, 6 * second], mayWait: 0, holdsSplit: 1_000 },
  'nats-freeze': { target: 'nats', lasts: [6 * second, 12 * second], mayWait: 0, holdsSplit: 1_000 },
  // Of a word that lost too much the end is waited for longer (700 ms and not 280), and it is heard a second time, one call after another: 1.4 s were seen.
  'net-loss': { target: 'network', lasts: [4 * second, 8 * second], mayWait: 1_500 },
  'net-delay': { target: 'network', lasts: [4 * second, 8 * second], mayWait: 1_500 },
  'disk-full': { target: 'disk', lasts: [8 * second, 12 * second], mayWait: 0 },
  'disk-slow': { target: 'disk', lasts: [8 * second, 12 * second], mayWait: 0 },
  'clock-ahead': { target: 'clock', lasts: [3 * second, 8 * second], mayWait: 0 },
  'clock-back': { target: 'clock', lasts: [3 * second, 8 * second], mayWait: 0 },
} as const satisfies Readonly<Record<string, FaultKind>>

export type FaultName = keyof typeof faultKinds

export const faultNames = Object.keys(faultKinds) as FaultName[]

export type PlannedRound = {
  readonly fault: FaultName
  readonly kind: FaultKind
  /** Ms from when all calls talk to the blow. */
  readonly after: number
  readonly lasts: number
  /** 0 ≤ x < 1, of those that can be struck. */
  readonly whom: number
  /** Of what is random in the round itself: which packets are lost, where calls go. */
  readonly seed: number
  /** Ms between one call and the next. */
  readonly apart: number
}

/** The first is always `none`: what callers wait without a fault is what the others are compared with. */
export function planOf(seed: number, faults: readonly FaultName[]): PlannedRound[] {
  const random = createRandom(seed)
  return ['none' as const, ...faults.filter((fault) => fault !== 'none')].map((fault) => roundOf(fault, random))
}

function roundOf(fault: FaultName, random: Random): PlannedRound {
  const kind: FaultKind = faultKinds[fault]
  const [from, to] = kind.lasts
  return {
    fault,
    kind,
    after: 500 + random.below(6_000),
    lasts: from + random.below(to - from + 1),
    whom: random.next(),
    seed: random.below(2 ** 31),
    apart: 100 + random.below(400),
  }
}
