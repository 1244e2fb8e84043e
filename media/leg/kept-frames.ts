/**
 * Owns what a leg keeps of its caller's voice for an actor in another process: that one may be gone at any moment, and with it what it has heard and not
 * yet written down, or the bus to it. Whoever listens then hears it again, faster than it was said, before what is said from there on.
 */
import type { AudioFormat, Frame } from '../../model/frame.ts'

export type KeptFrames = {
  /**
   * An actor begins to listen. `isElsewhere`: it runs in another process, what it hears is kept. `asks`: it says when it listens, and what is heard until
   * then waits. Answers how many frames do, and whether it has to say so.
   */
  begin(actor: Listening): { readonly kept: number; readonly waits: boolean }
  /** From here on what is heard is kept: the actor is about to leave. */
  keep(): void
  heard(frame: Frame): void
  /** The actor listens: all that is kept is sent, then what follows. */
  listens(): void
  /** What was sent from this one on has been lost on the way: what is kept of it is sent again. */
  again(from: number): void
  /** Frames up to this one have become words that are written down, or were none. */
  settled(seq: number): void
  /** Frames. */
  size(): number
}

export type Listening = {
  readonly epoch: number
  readonly hears: AudioFormat
  readonly isElsewhere: boolean
  readonly asks: boolean
}

/** 30 s. */
const maxKept = 1_500

type Kept = { readonly timestamp: number; readonly payload: Uint8Array }

/** `send` gets frames whose payload is valid during the call only. */
export function createKeptFrames(send: (frame: Frame) => void): KeptFrames {
  let kept: Kept[] = []
  /** Of the first that is kept, and of the next that comes, as the actor counts. */
  let firstSeq = 0
  let nextSeq = 0
  let actor: Listening | null = null
  let isKept = false
  let isWaiting = false

  const forget = (count: number): void => {
    kept.splice(0, count)
    firstSeq += count
  }
  return {
    begin(next) {
      // The same actor begins anew: it has heard what is kept.
      const isSame = actor?.epoch === next.epoch
      const isUnlike = actor?.hears.encoding !== next.hears.encoding || actor.hears.rateHz !== next.hears.rateHz
      actor = next
      isKept = next.isElsewhere
      if (isUnlike || (!isSame && !next.asks)) kept = []
      if (!isSame || isUnlike) {
        firstSeq = 0
        nextSeq = kept.length
        isWaiting = next.asks && (isKept || kept.length > 0)
      }
      return { kept: isWaiting ? kept.length : 0, waits: isWaiting }
    },
    keep: () => void (isKept = true),
    heard(frame) {
      const seq = nextSeq++
      if (isKept || isWaiting) {
        kept.push({ timestamp: frame.timestamp, payload: frame.payload.slice() })
        if (kept.length > maxKept) forget(kept.length - maxKept)
      } else firstSeq = nextSeq
      if (!isWaiting) send(seq === frame.seq ? frame : { ...frame, seq })
    },
    listens() {
      if (!isWaiting || actor === null) return
      isWaiting = false
      const { epoch } = actor
      kept.forEach(({ timestamp, payload }, index) => send({ epoch, seq: firstSeq + index, timestamp, payload }))
      if (!isKept) forget(kept.length)
    },
    again(from) {
      if (isWaiting || actor === null) return
      const { epoch } = actor
      kept.forEach(({ timestamp, payload }, index) => {
        const seq = firstSeq + index
        if (seq >= from) send({ epoch, seq, timestamp, payload })
      })
    },
    settled: (seq) => forget(Math.min(kept.length, Math.max(0, seq + 1 - firstSeq))),
    size: () => kept.length,
  }
}
