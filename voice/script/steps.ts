/** Owns what a call script is once it has been read: steps, intents and what happens on them. */
import type { EngineTool } from '../../model/voice-engine.ts'
import type { Slot } from './expected.ts'
import type { Choice } from './phrases.ts'
import type { Vocabulary } from './vocabulary.ts'

/** `key` may be a path into the result of a tool, the customer or the context. `is` in lower case. */
export type Condition = { readonly key: string; readonly is: string; readonly negated: boolean }
export type Placed = { readonly line: number; readonly when: Condition | null }

export type Say = Placed & { readonly kind: 'say'; readonly text: string }
export type AskedSlot = Exclude<Slot, { kind: 'none' }>
/** Without a key the question is asked in passing: nothing is noted and nothing is asked again. */
export type Ask = Placed & {
  readonly kind: 'ask'
  readonly key: string | null
  readonly text: string
  readonly slot: AskedSlot
  /** When an answer is read back: `spoken` is always but when it was pressed, `unsure` when it was not understood well. */
  readonly confirm: 'always' | 'spoken' | 'unsure' | 'never'
  /** How often it is asked in all. */
  readonly tries: number
  /** Said before the question is asked again: the first time, the second time, and the last one from then on. Empty: the usual words. */
  readonly noMatch: readonly string[]
  readonly noInput: readonly string[]
}
export type End = Placed & { readonly kind: 'end'; readonly text: string; readonly nextAction: string | null }
export type Knowledge = Placed & { readonly kind: 'knowledge'; readonly text: ''; readonly isOn: boolean }

/** `path`: the value as it is, of whatever type. `text` has placeholders. */
export type ArgumentValue =
  { readonly path: string } | { readonly text: string } | { readonly literal: number | boolean }
/** `type` of the tool's schema. `ask` asks the caller for what is required and not known; null when that cannot be asked. */
export type ToolArgument = {
  readonly name: string
  readonly type: string | null
  readonly value: ArgumentValue | null
  readonly isRequired: boolean
  readonly ask: Ask | null
}
export type ToolStep = Placed & {
  readonly kind: 'tool'
  /** Said while it runs. */
  readonly text: string
  readonly purpose: 'tool' | 'transfer'
  /** As the call's tools have it; null when the call has not got it. */
  readonly tool: string | null
  readonly arguments: readonly ToolArgument[]
  /** The key of its result. */
  readonly into: string | null
  /** The script says itself what happens when it fails. */
  readonly handlesErrors: boolean
}
export type Step = Say | Ask | End | Knowledge | ToolStep

export type Script = {
  readonly steps: readonly Step[]
  /** `value` is the name. */
  readonly intents: readonly (Choice & { readonly line: number })[]
  /** What happens on an intent, or on a request that every caller can make, by its name. */
  readonly asides: ReadonlyMap<string, readonly Step[]>
  /** Looks up what the worker knows; null when the call has not got it. */
  readonly knowledgeTool: string | null
}
export type ScriptError = { readonly line: number; readonly message: string }

export type Options = {
  /** Of the recogniser that will listen to the callers. */
  readonly vocabulary: Vocabulary
  /** What the call has; without them it has none. */
  readonly tools?: readonly EngineTool[]
  /** Keys of the worker's next actions; without them any key goes. */
  readonly nextActions?: readonly string[]
}
