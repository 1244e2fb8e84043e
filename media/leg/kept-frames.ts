/**
 * Owns what a leg keeps of its caller's voice, and of what they press and type, for an actor in another process: that one may be gone at any moment, and with
 * it what it has heard and not yet written down, or the bus to it. Whoever listens then hears it again, faster than it was said, before what is said from
 * there on. Frames and keys have one count, so that each is heard once and in its place.
 */
import type { AudioFormat, Frame } from '../../model/frame.ts'
import type { KeyEvent, SettledLine } from '../../model/leg.ts'
import { bytesOf, bytesOfAll, isGap, isKey, partedWith, type Kept } from './speech-bound.ts'

export type KeptFrames = {
  /**
   * An actor begins to listen. `isElsewhere`: it runs in another process, what it hears is kept. `asks`: it says when it listens, and what is heard until
   * then waits. Answers how many frames do, whether it has to say so, and whether what it hears is kept.
   */
  begin(actor: Listening): { readonly kept: number; readonly waits: boolean; readonly keeps: boolean }
  /** From here on what is heard is kept for the next actor: this one is about to leave, and gives back keys that it has heard and nobody has told. */
  keep(keys?: readonly KeyEvent[]): void
  heard(frame: Frame): void
  /** Before an actor began to listen it waits for one. */
  pressed(event: KeyEvent): void
  /** What is pressed from here on is for nobody's eyes. */
  hides(isHidden: boolean): void
  /** The actor listens: all that is kept is sent, then what follows. */
  listens(): void
  /** What was sent from this one on has been lost on the way: what is kept of it is sent again. Answers with the first that there is, or will be. */
  again(from: number): number
  /** It has become words that are written down, or was nothing. */
  settled(line: Omit<SettledLine, 'epoch'>): void
  /** Frames and keys. */
  size(): number
}

export type Listening = {
  readonly epoch: number
  readonly hears: AudioFormat
  readonly isElsewhere: boolean
  readonly asks: boolean
  /** Takes keys by their number. */
  readonly numbersKeys: boolean
}

type Ways = {
  /** Its payload is valid during the call only. Without any: what was before it is not kept any more. */
  send(frame: Frame): void
  tell(event: KeyEvent): void
}

/** 131 s of G.711, 32 s of 16-bit sound at 16 kHz; pauses are left out before any of it goes. */
const maxBytes = 1024 * 1024
/** A part of that at least goes at a time: looking for pauses costs a few ms. */
const keptBytes = (maxBytes * 7) / 8

/** Before anybody listens there are keys only. */
const unheard: AudioFormat = { encoding: 'pcmu', rateHz: 8000 }

export function createKeptFrames({ send, tell }: Ways): KeptFrames {
  /** In the order of their numbers, as the actor counts. */
  let kept: Kept[] = []
  let nextSeq = 0
  let actor: Listening | null = null
  let isKept = false
  let isWaiting = true
  let isLeft = false
  let isHidden = false

  let bytes = 0

  const hold = (entries: Kept[]): void => {
    kept = entries
    bytes = bytesOfAll(entries)
  }
  const keep = (entry: Kept): void => {
    kept.push(entry)
    bytes += bytesOf(entry)
    if (bytes > maxBytes) hold(partedWith(kept, actor?.hears ?? unheard, keptBytes))
  }
  const give = (entry: Kept, { epoch, numbersKeys }: Listening): void => {
    if (isGap(entry) && !numbersKeys) return
    if (!isKey(entry)) return send({ epoch, ...entry })
    const line = { epoch, seq: entry.seq, ...(entry.isHidden && { hidden: true as const }) }
    tell(numbersKeys ? { ...entry.event, line } : entry.event)
  }
  const mayGive = (): boolean => !isWaiting && !isLeft
  /** Another one listens, who counts from 0. */
  const beginAnew = (next: Listening): void => {
    const keys = next.numbersKeys ? [] : kept.filter(isKey)
    for (const key of keys) give(key, next)
    const stays = kept.filter((entry) => !isGap(entry) && (!isKey(entry) || next.numbersKeys))
    hold(stays.map((entry, seq) => ({ ...entry, seq })))
    nextSeq = kept.length
    isWaiting = next.asks && (isKept || kept.length > 0)
    if (isWaiting) return
    for (const entry of kept) give(entry, next)
    if (!isKept) hold([])
  }
  return {
    begin(next) {
      // The same actor begins anew: it has heard what is kept.
      const isSame = actor?.epoch === next.epoch
      const isUnlike = actor?.hears.encoding !== next.hears.encoding || actor.hears.rateHz !== next.hears.rateHz
      actor = next
      isKept = next.isElsewhere
      isLeft = false
      if (isUnlike || (!isSame && !next.asks)) hold(kept.filter(isKey))
      if (!isSame || isUnlike) beginAnew(next)
      const frames = isWaiting ? kept.filter((entry) => !isKey(entry)).length : 0
      return { kept: frames, waits: isWaiting, keeps: isKept }
    },
    keep(keys = []) {
      isKept = true
      isLeft = true
      const back = keys.map(({ line, ...event }) => ({ seq: line?.seq ?? 0, event, isHidden: line?.hidden === true }))
      if (back.length > 0) hold([...back, ...kept])
    },
    heard(frame) {
      const seq = nextSeq++
      if (isKept || isWaiting) keep({ seq, timestamp: frame.timestamp, payload: frame.payload.slice() })
      if (mayGive()) send(seq === frame.seq ? frame : { ...frame, seq })
    },
    pressed(event) {
      if (actor && !actor.numbersKeys) return tell(event)
      const key = { seq: nextSeq++, event, isHidden }
      if (isKept || isWaiting) keep(key)
      if (actor && mayGive()) give(key, actor)
    },
    hides: (hidden) => void (isHidden = hidden),
    listens() {
      if (!isWaiting || actor === null) return
      isWaiting = false
      for (const entry of kept) give(entry, actor)
      if (!isKept) hold([])
    },
    again(from) {
      const lost = kept.filter((entry) => entry.seq >= from)
      if (!mayGive() || actor === null) return from
      for (const entry of lost) give(entry, actor)
      return lost[0]?.seq ?? nextSeq
    },
    settled({ seq, keys = { upTo: seq, open: [] } }) {
      const isDone = (entry: Kept): boolean =>
        isKey(entry) ? entry.seq <= keys.upTo && !keys.open.includes(entry.seq) : entry.seq <= seq
      hold(kept.filter((entry) => !isDone(entry)))
    },
    size: () => kept.length,
  }
}
