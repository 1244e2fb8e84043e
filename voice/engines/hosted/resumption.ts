/**
 * Owns what follows when the agent fell silent for what was no speech (a cough, a door): a moment later it goes on. Pure. Counts frames of the
 * caller's line.
 */
import { frameMs } from '../../../model/frame.ts'

/** `isCut`: the agent was cut off before it had been heard out. `quiet`: so many frames since that was for nothing; null while it is not known. */
export type Resumption = { readonly isCut: boolean; readonly quiet: number | null }

/** Also when the model speaks again, whoever asked it. */
export const initialResumption: Resumption = { isCut: false, quiet: null }

/** A provider that answers by itself does so within this time. */
const quietFrames = 600 / frameMs

export const resumptionCut = ({ quiet }: Resumption): Resumption => ({ isCut: true, quiet })

/** `text` is what the caller said in the end; empty for no speech. */
export function resumptionHeard(resumption: Resumption, text: string): Resumption {
  if (text.trim() !== '') return initialResumption
  return resumption.isCut ? { isCut: true, quiet: 0 } : resumption
}

/** 20 ms have passed. `goesOn`, once: the agent is to go on. */
export function resumptionAfterFrame(
  resumption: Resumption,
  isQuiet: boolean,
): { readonly resumption: Resumption; readonly goesOn: boolean } {
  if (resumption.quiet === null) return { resumption, goesOn: false }
  const quiet = isQuiet ? resumption.quiet + 1 : 0
  if (quiet >= quietFrames) return { resumption: initialResumption, goesOn: true }
  return { resumption: { ...resumption, quiet }, goesOn: false }
}
