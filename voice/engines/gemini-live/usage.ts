/** Owns how Gemini Live's count of tokens is read: `usageMetadata`, https://ai.google.dev/api/live#UsageMetadata. Pure. */
import { z } from 'zod'
import { countOf, unitsOf, type UsedUnits } from '../../../model/usage.ts'

const count = z.unknown().optional().transform(countOf)
const Parts = z
  .array(z.object({ modality: z.string(), tokenCount: count }).catch({ modality: '', tokenCount: 0 }))
  .catch([])

export const UsageMetadata = z
  .object({
    promptTokenCount: count,
    cachedContentTokenCount: count,
    responseTokenCount: count,
    toolUsePromptTokenCount: count,
    thoughtsTokenCount: count,
    promptTokensDetails: Parts,
    cacheTokensDetails: Parts,
    responseTokensDetails: Parts,
  })
  .optional()
  .catch(undefined)
export type UsageMetadata = z.infer<typeof UsageMetadata>

/** Null: there is none. What is told to be sound counts so, all else as text; thoughts are words of the model. */
export function usageIn(usage: UsageMetadata): UsedUnits | null {
  if (usage === undefined) return null
  const [prompt, cached, made] = [
    soundIn(usage.promptTokensDetails),
    soundIn(usage.cacheTokensDetails),
    soundIn(usage.responseTokensDetails),
  ]
  const cachedText = Math.max(0, usage.cachedContentTokenCount - cached)
  const units: UsedUnits = {
    textIn: Math.max(0, usage.promptTokenCount - prompt - cachedText) + usage.toolUsePromptTokenCount,
    textInCached: cachedText,
    audioIn: Math.max(0, prompt - cached),
    audioInCached: cached,
    textOut: Math.max(0, usage.responseTokenCount - made) + usage.thoughtsTokenCount,
    audioOut: made,
  }
  const used = unitsOf(units)
  return used.length === 0 ? null : (Object.fromEntries(used) as UsedUnits)
}

const soundIn = (parts: z.infer<typeof Parts>): number =>
  parts.reduce((sum, { modality, tokenCount }) => (modality === 'AUDIO' ? sum + tokenCount : sum), 0)
