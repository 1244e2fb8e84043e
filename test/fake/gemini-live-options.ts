/** Owns what a test tells the fake of Gemini Live: what its model says, how it sends it, and what it refuses. */
import type { FunctionResponse, LiveClientSetup } from '@google/genai'

/** What the model answers. `text` of a voice is what the transcript says. */
export type ModelInput = {
  readonly kind: 'voice' | 'text' | 'tool'
  /** From 0, of the session. */
  readonly count: number
  readonly text: string
  readonly responses: readonly FunctionResponse[]
  readonly context: readonly { readonly role: string; readonly text: string }[]
  readonly setup: LiveClientSetup
}

export type ModelWords =
  | { readonly text: string }
  /** Of a tool that does not block the model, what stands behind it is said all the same. */
  | { readonly call: string; readonly args: unknown }
  /** The turn ends so. */
  | { readonly reason: string }

/** What a handle stands for. */
export type SavedSession = {
  readonly id: string
  readonly model: string
  readonly context: { role: string; text: string }[]
  /** How many sockets it has, shared by all that a handle of it stands for. */
  readonly open: { sockets: number }
}

type Ending = { readonly code: number; readonly reason: string }

export type GeminiOptions = {
  /** A text that is to be said word for word is not asked of it. */
  model(input: ModelInput): readonly ModelWords[]
  /** Of the nth utterance of a session, from 0. */
  transcript?(count: number): string
  /** With their prefix. */
  readonly models?: readonly string[]
  readonly voices?: readonly string[]
  /** Of the nth text of a session, from 0: true for one that the model passes over, as gemini-3.1-flash-live does with about one in twenty. */
  passesOver?(count: number): boolean
  /** With these the setup is refused: "Unsupported language code" is what googleapis/python-genai issues tell of it. */
  readonly refusedLanguages?: readonly string[]
  /** Of its texts, against its sound. */
  readonly textOrder?: 'before' | 'mixed' | 'after'
  /** Pieces of transcripts say which one is the last; true unless told. */
  readonly tellsLastPiece?: boolean
  readonly tellsActivity?: boolean
  readonly takesContextUpdates?: boolean
  readonly binary?: boolean
  /** Fixed delays in ms, for benches. */
  readonly firstAudioAfter?: number
  readonly transcriptAfter?: number
  readonly speechStartAfter?: number
  readonly setupAfter?: number
  /** A model that waits until its words have been played. */
  readonly turnCompleteAfter?: number
  /** Between two pieces of 100 ms of sound. */
  readonly pace?: number
  /** Every setup is answered so. */
  readonly refusal?: Ending | 'silence'
  /** Every setup with a handle. */
  readonly handleRefusal?: Ending | 'silence'
}
