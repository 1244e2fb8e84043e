/**
 * Owns what the leg is told of the caller's speech and keys that need not be heard again, should this actor be gone: what has become words that are written
 * down, and what was nothing. The rest the next actor hears anew (media/leg/kept-frames.ts). What a turn settles is written down with it, because its actor
 * may be gone before the leg is told. Keys become turns in their own time, before or behind what is said around them.
 */
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { toBytes } from '../../model/bus-json.ts'
import type { Turn } from '../../model/call.ts'
import { frameMs } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import type { KeyEvent, LegCommand, SettledLine } from '../../model/leg.ts'
import { keysOf } from '../../model/transcript-marks.ts'

export type SettledSpeech = {
  /** A frame of the caller has come. */
  heard(seq: number): void
  /** A key has come, or what was typed. */
  pressed(seq: number, event: KeyEvent): void
  /** What is settled once this turn of the caller is written down; null: the leg keeps nothing. Each turn is asked for once, in order. */
  settles(turn: Turn): SettledLine | null
  /** It is written down. */
  written(line: SettledLine): void
  /** Keys that nobody has told yet, of a leg that keeps none. */
  untold(): KeyEvent[]
  /** The leg is another one, and counts anew. */
  restart(): void
}

type Deps = {
  readonly bus: Bus
  readonly callId: CallId
  readonly epoch: number
  /** The leg keeps what the caller says. */
  readonly isKept: boolean
  /** Ms since the epoch: turns count from there. */
  readonly answeredAt: number
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

type Key = { readonly seq: number; readonly event: KeyEvent }

export function createSettledSpeech(deps: Deps): SettledSpeech {
  const { bus, callId, epoch, isKept, answeredAt, heardUntil, isOpen } = deps
  let frames = 0
  let last = -1
  /** Of sound: as the leg knows, and as turns say that are being written. */
  let [told, promised] = [-1, -1]
  /** Of no turn yet, oldest first. */
  let keys: Key[] = []
  /** Of turns that are being written. */
  let leaving: Key[] = []
  /** Numbers of keys, as of late: they have a place among the frames. */
  let places: number[] = []

  /** So many frames before the last. */
  const framesBack = (frames: number): number =>
    places.reduceRight((seq, key) => (key > seq ? seq - 1 : seq), last - frames)
  const line = (seq: number, open: readonly Key[]): SettledLine => ({
    epoch,
    seq: Math.min(seq, last),
    keys: { upTo: last, open: open.map((key) => key.seq).slice(-maxKeys) },
  })
  const tell = (settled: SettledLine): void => {
    told = Math.max(told, settled.seq)
    const command: LegCommand = { type: 'settled', ...settled }
    bus.publish(subjectsOf(callId).legCommand, toBytes(command))
  }
  return {
    heard(seq) {
      last = seq
      if (++frames % toldEvery !== 0) return
      keys = keys.filter((key) => key.seq > seq - keyTold)
      if (!isKept || isOpen()) return
      const settled = line(framesBack(lookBack), [...leaving, ...keys])
      if (settled.seq > told) tell(settled)
    },
    pressed(seq, event) {
      last = seq
      places = [...places, seq].slice(-maxKeys)
      keys = [...keys, { seq, event }].slice(-maxKeys)
    },
    settles({ text, to }) {
      const left = untoldAfter(keys, text)
      const taken = keys.filter((key) => !left.includes(key))
      keys = left
      if (!isKept || last < 0) return null
      leaving = [...leaving, ...taken]
      const ago = Math.max(0, Math.floor((heardUntil() - answeredAt - to) / frameMs))
      // What is said around a key has a turn of its own.
      promised = Math.max(told, promised, taken.length > 0 ? -1 : framesBack(ago))
      return line(promised, keys)
    },
    written(settled) {
      // Of a leg that is another one by now.
      const { upTo = -1, open = [] } = settled.keys ?? {}
      if (upTo > last) return
      leaving = leaving.filter(({ seq }) => seq > upTo || open.includes(seq))
      tell(settled)
    },
    untold: () => (isKept ? [] : keys.map(({ event }) => event)),
    restart() {
      last = -1
      ;[told, promised] = [-1, -1]
      ;[keys, leaving, places] = [[], [], []]
    },
  }
}

/**
 * What a turn of this text leaves of them. Keys are told as all engines tell them, in their order and not all of them; what was typed word for word,
 * perhaps several at once.
 */
function untoldAfter(keys: readonly Key[], text: string): Key[] {
  const told = keysOf(text)
  if (told === null) return keys.filter(({ event }) => event.type === 'dtmf' || !text.includes(event.text))
  const digits = keys.filter(({ event }) => event.type === 'dtmf')
  const pressed = digits.map(({ event }) => (event.type === 'dtmf' ? event.digit : '')).join('')
  // Those that were pressed in private are told as dots: the oldest, then.
  const first = Math.max(0, pressed.indexOf(told))
  const newest = digits.slice(0, first + told.length).at(-1)
  return keys.filter(({ seq, event }) => event.type === 'typed' || newest === undefined || seq > newest.seq)
}
