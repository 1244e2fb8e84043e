/** Owns what the dialogue expects of the caller's next words, as plain data: a recogniser makes grammars of it and answers with a Meaning. */
import type { Choice } from './phrases.ts'

/** `min` and `max` of digits are lengths, of a number its bounds, all inclusive. `none`: nothing is asked. */
export type Slot =
  | { readonly kind: 'choices'; readonly choices: readonly Choice[] }
  | { readonly kind: 'digits'; readonly min: number; readonly max: number }
  | { readonly kind: 'number'; readonly min: number; readonly max: number }
  | { readonly kind: 'date' }
  | { readonly kind: 'time' }
  | { readonly kind: 'free' }
  | { readonly kind: 'none' }

export type Expected = {
  readonly slot: Slot
  /** `value` is the intent's name. */
  readonly intents: readonly Choice[]
  /** A value is being read back: the slot is yes or no. */
  readonly confirming: boolean
  /** Anything else that is said may be a question about what the worker knows: it is worth writing down as free text. */
  readonly dictate?: boolean
}
