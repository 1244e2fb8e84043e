/** Owns how long a hosted engine waits for a caller who says nothing: asked twice, then the call is ended. Pure. Counts frames of the caller's line. */
import { frameMs } from '../../../model/frame.ts'

/** `frames` in a row were quiet; so often the caller has been `asked` since they said something. */
export type IdlePrompts = { readonly frames: number; readonly asked: number }

export const initialIdle: IdlePrompts = { frames: 0, asked: 0 }

const silentFrames = 10_000 / frameMs
const maxAsked = 2

/** 20 ms have passed; `isQuiet`: nobody speaks and nobody is at work. `wants`: what is to be done now, if anything. */
export function idleAfterFrame(
  { frames, asked }: IdlePrompts,
  isQuiet: boolean,
): { readonly idle: IdlePrompts; readonly wants: 'ask' | 'give up' | null } {
  if (!isQuiet) return { idle: { frames: 0, asked }, wants: null }
  if (frames + 1 < silentFrames) return { idle: { frames: frames + 1, asked }, wants: null }
  return { idle: { frames: 0, asked: asked + 1 }, wants: asked >= maxAsked ? 'give up' : 'ask' }
}
