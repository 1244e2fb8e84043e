/**
 * Owns what a conversation by a script goes on without when more is remembered than is kept: results of tools, the largest first. The script goes on
 * where it was; of such a result it has nothing more to say. Pure.
 */
import type { Json } from '../../../model/json.ts'
import { DialogueState } from './dialogue-state.ts'

export function shortenedState(memory: Json, maxBytes: number): Json {
  const state = DialogueState.parse(memory)
  const bySize = Object.entries(state.results).sort(([, a], [, b]) => bytesOf(a) - bytesOf(b))
  const shortened = (): DialogueState => ({ ...state, results: Object.fromEntries(bySize) })
  while (bySize.length > 0 && bytesOf(shortened()) > maxBytes) bySize.pop()
  return shortened()
}

const bytesOf = (json: Json): number => Buffer.byteLength(JSON.stringify(json))
