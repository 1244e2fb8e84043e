/** Owns the agent's frames that wait to be played: first in, first out, of one size, each newer than the one before, and bounded. */
import type { Frame } from '../../model/frame.ts'

export type FrameQueue = {
  readonly size: () => number
  readonly clear: () => void
  /** Forgets all: what follows is another line, in frames of this size. */
  readonly restart: (frameBytes: number) => void
  /** False when it is dropped: of a wrong size, not newer than the last one, or too many. */
  readonly push: (frame: Frame) => boolean
  readonly shift: () => Frame | undefined
  /** Forgets what is queued behind a frame that is missing, so that it may come again; answers with the last before that, -1 when none came. */
  readonly rewind: () => number
  /** Frames that `push` refused. */
  readonly dropped: () => number
}

/** 120 s. */
const maxQueued = 6000
/** Places of frames that were taken, in front of the queue, at most: the rest is not moved at every step. */
const compactAt = 256

export function createFrameQueue(): FrameQueue {
  const frames: (Frame | undefined)[] = []
  let head = 0
  let lastSeq = -1
  let lastTaken = -1
  /** Of the first that is missing in front of some that are queued. */
  let missing: number | null = null
  let frameBytes = 0
  let dropped = 0
  const size = () => frames.length - head
  const clear = () => {
    frames.length = 0
    head = 0
    missing = null
  }
  return {
    clear,
    size,
    dropped: () => dropped,
    restart(bytes) {
      clear()
      frameBytes = bytes
      lastSeq = -1
      lastTaken = -1
    },
    push(frame) {
      const fits = frame.payload.length === frameBytes && frame.seq > lastSeq && size() < maxQueued
      if (!fits) dropped++
      if (!fits) return false
      if (frame.seq > lastSeq + 1) missing ??= lastSeq + 1
      lastSeq = frame.seq
      frames.push(frame)
      return true
    },
    shift() {
      const frame = frames[head]
      if (frame === undefined) return undefined
      // Its sound is not kept until the places are.
      frames[head] = undefined
      lastTaken = frame.seq
      if (missing !== null && lastTaken > missing) missing = null
      if (++head >= compactAt) head -= frames.splice(0, head).length
      return frame
    },
    rewind() {
      if (missing === null) return lastSeq
      const first = frames.findIndex((frame) => frame !== undefined && frame.seq > (missing ?? 0))
      if (first >= 0) frames.length = first
      lastSeq = Math.max(missing - 1, lastTaken)
      missing = null
      return lastSeq
    },
  }
}
