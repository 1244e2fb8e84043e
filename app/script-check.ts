/** Owns the check of call scripts when they are saved: what the embedded engine would refuse in a call. Prose is for hosted engines and passes. */
import type { ScriptCheck } from '../model/script-check.ts'
import { readVocabulary } from '../voice/engines/embedded/vocabulary.ts'
import { checkScript } from '../voice/script/script.ts'
import { hasStatements } from '../voice/script/notation.ts'

/** Tools and next actions are a worker's, and not asked here. */
export async function openScriptCheck(): Promise<ScriptCheck> {
  const vocabulary = await readVocabulary()
  return (text) => (hasStatements(text) ? checkScript(text, { vocabulary }) : [])
}
