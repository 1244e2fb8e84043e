/** Owns which extractors this process reads finished talks with: the embedded one, and a language model where one is set up. */
import type { Extractors } from '../actors/after-call/analysis.ts'
import { createEmbeddedExtractor } from '../voice/extraction/embedded-extractor.ts'
import { createModelExtractor } from '../voice/extraction/model-extractor.ts'
import type { Config } from './config.ts'
import type { Core } from './core.ts'

/** `close` ends what they are at. Idempotent. */
export function openExtractors(
  { clock, log }: Pick<Core, 'clock' | 'log'>,
  { extraction }: Pick<Config, 'extraction'>,
): Extractors & { close(): Promise<void> } {
  const model = extraction && createModelExtractor({ ...extraction, clock, log })
  return { embedded: createEmbeddedExtractor(), model, close: async () => model?.close() }
}
