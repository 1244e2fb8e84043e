/**
 * Owns what the leg is told of the caller's speech that need not be heard again, should this actor be gone: what has become words that are written down, and
 * what was no speech. The rest the next actor hears anew (media/leg/kept-frames.ts).
 * A key counts as speech: most of them are told as the caller's turn.
 */
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { toBytes } from '../../model/bus-json.ts'
import { frameMs } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import type { LegCommand } from '../../model/leg.ts'

export type SettledSpeech = {
  /** A frame of the caller has come. */
  heard(seq: number): void
  /** A key has come, or what was typed. */
  pressed(seq: number, typed: string | null): void
  /** What the caller said up to this time, ms since the epoch, is written down as this text. */
  written(until: number, text: string): void
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

/** A key that is not told by then never is: nothing asked for it. */
const keyTold = 10_000 / frameMs
const maxKeys = 64

export function createSettledSpeech({ bus, callId, epoch, heardUntil, isOpen }: Deps): SettledSpeech {
  let frames = 0
  let last = -1
  let told = -1
  /** Not settled, oldest first. */
  let keys: number[] = []
  /** What was typed, as of late. */
  let texts: string[] = []

  /** Keys are told as all engines tell them, what was typed word for word, perhaps several at once. */
  const isOfKeys = (text: string): boolean =>
    text.startsWith('[pressed ') || texts.some((typed) => text.includes(typed))
  /** So many frames before the last: keys have numbers too. */
  const framesBack = (frames: number): number =>
    keys.toReversed().reduce((seq, key) => (key > seq ? seq - 1 : seq), last - frames)
  const settle = (seq: number): void => {
    if (seq <= told) return
    told = Math.min(seq, last)
    keys = keys.filter((key) => key > told)
    const command: LegCommand = { type: 'settled', epoch, seq: told }
    bus.publish(subjectsOf(callId).legCommand, toBytes(command))
  }
  return {
    heard(seq) {
      last = seq
      if (++frames % toldEvery !== 0 || isOpen()) return
      const untold = keys.find((key) => key > seq - keyTold) ?? Infinity
      settle(Math.min(framesBack(lookBack), untold - 1))
    },
    pressed(seq, typed) {
      last = seq
      if (typed !== null) texts = [...texts, typed].slice(-maxKeys)
      keys = [...keys, seq].slice(-maxKeys)
    },
    written(until, text) {
      let seq = framesBack(Math.max(0, Math.floor((heardUntil() - until) / frameMs)))
      // Keys at that moment have turns of their own.
      if (!isOfKeys(text)) while (keys.includes(seq)) seq--
      settle(seq)
    },
  }
}
