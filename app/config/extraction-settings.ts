/** Owns the settings of the language model that reads finished talks. */
import { z } from 'zod'
import { ApiKey, HttpUrl, nothingWithout, optional, pairOf, text } from './setting.ts'

export const extractionSettings = z.object({
  EXTRACTION_URL: optional(HttpUrl),
  EXTRACTION_MODEL: optional(text.min(1)),
  EXTRACTION_KEY: optional(ApiKey),
  EXTRACTION_TIMEOUT_SECONDS: optional(z.coerce.number().min(1).max(50)),
})

type Settings = z.infer<typeof extractionSettings>

const usualTimeout = 30

/** Null: only the embedded extractor reads them. */
export function extractionOf(settings: Settings) {
  const { EXTRACTION_URL, EXTRACTION_MODEL, EXTRACTION_KEY, EXTRACTION_TIMEOUT_SECONDS } = settings
  const pair = pairOf({ EXTRACTION_URL }, { EXTRACTION_MODEL })
  if (pair === null) return nothingWithout('EXTRACTION_URL', { EXTRACTION_KEY, EXTRACTION_TIMEOUT_SECONDS })
  const [url, model] = pair
  return {
    address: { url, model, apiKey: EXTRACTION_KEY },
    timeout: (EXTRACTION_TIMEOUT_SECONDS ?? usualTimeout) * 1000,
  }
}
