/** Owns how what a caller said stands in a transcript. */
import { unclear } from '../../../model/transcript-marks.ts'
import type { EngineEvent } from '../../../model/voice-engine.ts'
import type { Heard } from './caller-utterances.ts'

/** Empty for what was no speech after all. */
export function finalTextOf({
  text,
  isNoise,
  confidence,
  from,
  to,
}: Heard): Extract<EngineEvent, { type: 'user_text' }> {
  const told = text === '' && !isNoise ? unclear : text
  return { type: 'user_text', text: told, isFinal: true, confidence, from, to }
}
