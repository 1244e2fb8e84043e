/** Owns what is left on an answering machine: the `voicemail:` lines of the call script (docs/call-scripts.md). */
import type { EngineConfig } from '../../model/voice-engine.ts'
import { contextOf, fillIn, type Values } from './embedded/fill-in.ts'
import { blocksOf } from './embedded/script-lines.ts'
import { voicemailOf } from './embedded/script-statements.ts'

/** Null: the script has none. */
export function voicemailMessageOf({ script, customer, context }: EngineConfig): string | null {
  const blocks = blocksOf(script ?? '').filter(({ kind }) => kind === 'voicemail')
  const values: Values = {
    customer: customer === null ? null : (Object.fromEntries(Object.entries(customer)) as Values),
    context: contextOf(context),
  }
  const text = fillIn(blocks.map((block) => voicemailOf(block.text)).join(' '), values)
  return text === '' ? null : text
}
