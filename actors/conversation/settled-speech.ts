/**
 * Owns what the leg is told of the caller's speech that need not be heard again, should this actor be gone: what has become words that are written down, and
 * what was no speech. The rest the next actor hears anew (media/leg/kept-frames.ts).
 */
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { toBytes } from '../../model/bus-json.ts'
import { frameMs } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import type { LegCommand } from '../../model/leg.ts'

export type SettledSpeech = {
  /** A frame of the caller has come. */
  heard(seq: number): void
  /** What the caller said up to this time, ms since the epoch, is written down. */
  written(until: number): void
}

type Deps = {
  readonly bus: Bus
  readonly callId: CallId
  readonly epoch: number
  /** When the frame came that came last, as the caller said it: ms since the epoch. */
  heardUntil(): number
  /** The caller says something, or has, whose words are not known yet, or nobody listens. */
  isOpen(): boolean
}

const toldEvery = 1_000 / frameMs
/** An engine says that somebody speaks when they have for a moment. */
const lookBack = 1_500 / frameMs

export function createSettledSpeech({ bus, callId, epoch, heardUntil, isOpen }: Deps): SettledSpeech {
  let last = -1
  let told = -1

  const settle = (seq: number): void => {
    if (seq <= told) return
    told = Math.min(seq, last)
    const command: LegCommand = { type: 'settled', epoch, seq: told }
    bus.publish(subjectsOf(callId).legCommand, toBytes(command))
  }
  return {
    heard(seq) {
      last = seq
      if (seq % toldEvery === 0 && !isOpen()) settle(seq - lookBack)
    },
    written: (until) => settle(last - Math.max(0, Math.floor((heardUntil() - until) / frameMs))),
  }
}
