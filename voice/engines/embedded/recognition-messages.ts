/** Owns what a recognition thread is told and what it answers. */
import type { Grammar } from './grammar.ts'

export type RecognitionRequest =
  | { readonly type: 'begin'; readonly utterance: number; readonly grammar: Grammar; readonly gain: number }
  | { readonly type: 'sound'; readonly utterance: number; readonly samples: Int16Array }
  | { readonly type: 'end'; readonly utterance: number }
  /** Has no reply; an utterance that has ended or is unknown is none of its business. */
  | { readonly type: 'drop'; readonly utterance: number }
  /** Has no reply. So many are on the line, who may all speak at once. */
  | { readonly type: 'callers'; readonly callers: number }

/**
 * Scores are acoustic, per 10 ms: 0 is perfect, clear speech has about -12. `score` is that of all words together, `worst` that of the word, or of
 * the silence between or after the words, that fits the sound least.
 */
export type HeardWords = {
  readonly words: readonly string[]
  readonly score: number
  readonly worst: number
  /** What a second look found, where the first found little. */
  readonly again?: HeardWords
}

export type RecognitionReply =
  | { readonly type: 'ready' }
  | { readonly type: 'begun'; readonly utterance: number }
  | { readonly type: 'partial'; readonly utterance: number; readonly words: readonly string[] }
  /** Nothing is known of it, and of the heap that all decoders share neither. */
  | { readonly type: 'failed'; readonly utterance: number; readonly details: string }
  | {
      readonly type: 'final'
      readonly utterance: number
      readonly heard: HeardWords
      /** Grammars that the thread holds by now. */
      readonly compiled: number
    }
