/** Owns how the bill of a reply, or of a transcription, is read. OpenAI API reference, "response.done" and "input_audio_transcription.completed". Pure. */
import { z } from 'zod'
import { countOf, unitsOf, type UsedUnits } from '../../../model/usage.ts'

const count = z.unknown().optional().transform(countOf)
const nothing = { text_tokens: 0, audio_tokens: 0 }
const Details = z.object({ text_tokens: count, audio_tokens: count }).catch(nothing)
const Usage = z.object({
  input_tokens: count,
  output_tokens: count,
  seconds: z
    .unknown()
    .optional()
    .transform((value) => (typeof value === 'number' ? countOf(1000 * value) : 0)),
  input_token_details: Details.and(
    z.object({ cached_tokens_details: Details }).catch({ cached_tokens_details: nothing }),
  ),
  output_token_details: Details,
})

/** Null: there is none. Tokens of which no kind is told count as text. */
export function usageIn(given: unknown): UsedUnits | null {
  const usage = Usage.safeParse({ input_token_details: nothing, output_token_details: nothing, ...(given as object) })
  if (!usage.success) return null
  const { input_tokens, output_tokens, seconds, input_token_details: sent, output_token_details: made } = usage.data
  const cached = sent.cached_tokens_details
  const untold = (all: number, { text_tokens, audio_tokens }: typeof nothing) =>
    Math.max(0, all - text_tokens - audio_tokens) + text_tokens
  const units: UsedUnits = {
    textIn: Math.max(0, untold(input_tokens, sent) - cached.text_tokens),
    textInCached: cached.text_tokens,
    audioIn: Math.max(0, sent.audio_tokens - cached.audio_tokens),
    audioInCached: cached.audio_tokens,
    textOut: untold(output_tokens, made),
    audioOut: made.audio_tokens,
    transcribedMs: seconds,
  }
  const used = unitsOf(units)
  return used.length === 0 ? null : (Object.fromEntries(used) as UsedUnits)
}
