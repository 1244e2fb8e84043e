/**
 * Owns results of tools that do not block the model, while nobody knows whether it goes on speaking in the same turn: then it is to say nothing more
 * about them, else it is to speak now. Counts frames of the caller's line.
 */
import { frameMs } from '../../../model/frame.ts'

/** Without its scheduling. */
export type Result = { readonly id: string; readonly name: string; readonly response: object }
export type Scheduling = 'SILENT' | 'WHEN_IDLE'

export type HeldResults = {
  hold(result: Result): void
  /** The model speaks: they are given to it without a question. */
  modelSpeaks(): void
  /** The model has nothing more to say by itself: they are given to it, and it is to speak. False: there are none. */
  modelWaits(): boolean
  /** 20 ms have passed; true when the model is to speak about them now. */
  frame(): boolean
}

/** A model that has called a tool, and goes on by itself, does so within this. */
const goesOnWithin = 500 / frameMs

export function createHeldResults(give: (result: Result, scheduling: Scheduling) => void): HeldResults {
  let held: Result[] = []
  let left = 0
  const release = (last: Scheduling): void => {
    const given = held
    held = []
    // One question is enough.
    for (const [index, result] of given.entries()) give(result, index === given.length - 1 ? last : 'SILENT')
  }
  const modelWaits = (): boolean => {
    if (held.length === 0) return false
    release('WHEN_IDLE')
    return true
  }
  return {
    hold(result) {
      held.push(result)
      left = goesOnWithin
    },
    modelSpeaks: () => release('SILENT'),
    modelWaits,
    frame: () => held.length > 0 && --left <= 0 && modelWaits(),
  }
}
