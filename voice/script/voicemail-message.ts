/** Owns what is left on an answering machine: the `voicemail:` lines of the call script (docs/call-scripts.md). */
import type { EngineConfig } from '../../model/voice-engine.ts'
import { fillIn, valuesOf } from './fill-in.ts'
import { blocksOf } from './lines.ts'
import { voicemailOf } from './statements.ts'

/** Null: the script has none. */
export function voicemailMessageOf(config: EngineConfig): string | null {
  const blocks = blocksOf(config.script ?? '').filter(({ kind }) => kind === 'voicemail')
  const text = fillIn(blocks.map((block) => voicemailOf(block.text)).join(' '), valuesOf(config))
  return text === '' ? null : text
}
