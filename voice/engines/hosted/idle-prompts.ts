/** Owns how long a hosted engine waits for a caller who says nothing: asked twice, then the call is ended. Counts frames of the caller's line. */
import { frameMs } from '../../../model/frame.ts'

export type IdlePrompts = {
  /** 20 ms have passed; `isQuiet`: nobody speaks and nobody is at work. What is to be done now, if anything. */
  frame(isQuiet: boolean): 'ask' | 'give up' | null
  /** The caller is there. */
  renew(): void
}

const silentFrames = 10_000 / frameMs
const maxAsked = 2

export function createIdlePrompts(): IdlePrompts {
  let frames = 0
  let asked = 0
  return {
    frame(isQuiet) {
      frames = isQuiet ? frames + 1 : 0
      if (frames < silentFrames) return null
      frames = 0
      return ++asked > maxAsked ? 'give up' : 'ask'
    },
    renew() {
      frames = 0
      asked = 0
    },
  }
}
