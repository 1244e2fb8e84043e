/**
 * Owns what the caller has typed and the model has not been told: it waits until the caller may speak, and then a moment longer, so that an agent that
 * speaks has been cut off before it is asked to answer. Pure.
 */
import { frameMs } from '../../../model/frame.ts'

/** `since`: the frame at which it counted as spoken; null: it does not yet. */
export type Typed = { readonly texts: readonly string[]; readonly since: number | null }

export const initialTyped: Typed = { texts: [], since: null }

const cutWithin = 200 / frameMs
const maxTexts = 8

export const textTyped = ({ texts, since }: Typed, text: string): Typed => ({
  texts: texts.length < maxTexts ? [...texts, text] : texts,
  since,
})

export const isTyping = ({ texts }: Typed): boolean => texts.length > 0

/** It begins to count. */
export const typedBegun = ({ texts }: Typed, now: number): Typed => ({ texts, since: now })

export const isTypedDue = ({ texts, since }: Typed, now: number): boolean =>
  texts.length > 0 && since !== null && now - since >= cutWithin

/** As one thing said. */
export const textOfTyped = ({ texts }: Typed): string => texts.join(' ')
