/** Owns what follows when the agent fell silent for what was no speech (a cough, a door): a moment later it goes on. Counts frames of the caller's line. */
import { frameMs } from '../../../model/frame.ts'

export type Resumption = {
  /** The agent was cut off before it had been heard out. */
  cut(): void
  /** What the caller said in the end; empty for no speech. */
  heard(text: string): void
  /** The model speaks again, whoever asked it. */
  replyStarted(): void
  /** 20 ms have passed. True, once, when the agent is to go on. */
  frame(isQuiet: boolean): boolean
}

/** A provider that answers by itself does so within this time. */
const quietFrames = 600 / frameMs

export function createResumption(): Resumption {
  let isCut = false
  let quiet: number | null = null
  const forget = (): void => {
    isCut = false
    quiet = null
  }
  return {
    cut() {
      isCut = true
    },
    heard(text) {
      if (text.trim() !== '') forget()
      else if (isCut) quiet = 0
    },
    replyStarted: forget,
    frame(isQuiet) {
      if (quiet === null) return false
      quiet = isQuiet ? quiet + 1 : 0
      if (quiet < quietFrames) return false
      forget()
      return true
    },
  }
}
