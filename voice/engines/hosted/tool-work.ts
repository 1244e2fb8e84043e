/** Owns the worker's tools that a model has called and waits for: results go back once, canceled ones nowhere, and a caller who waits long hears a few words. */
import { frameMs } from '../../../model/frame.ts'
import type { JsonObject } from '../../../model/json.ts'
import type { ToolResult } from '../../../model/tool.ts'
import type { Floor } from './floor.ts'
import type { TalkDeps } from './talk-deps.ts'
import { fillerWordsOf } from './filler-words.ts'
import type { Wire } from './wire.ts'

export type ToolWork = {
  begin(id: string, name: string): void
  /** False: nobody waited for it. */
  canceled(id: string): boolean
  result(id: string, name: string, result: ToolResult): void
  frame(): void
  isBusy(): boolean
}

const fillAfter = 1_500 / frameMs
/** Of past calls, whose results may still come. */
const maxForgotten = 256

export function createToolWork({
  config,
  speaksWhileToolsRun,
  wire,
  floor,
}: Pick<TalkDeps, 'config' | 'speaksWhileToolsRun'> & { readonly wire: Wire; readonly floor: Floor }): ToolWork {
  const pending = new Set<string>()
  const forgotten = new Set<string>()
  const filler = speaksWhileToolsRun ? fillerWordsOf(config.language) : null
  let frames = 0
  let filled = true

  return {
    begin(id) {
      if (pending.size === 0) {
        frames = 0
        filled = floor.hasSpoken()
      }
      pending.add(id)
    },
    canceled(id) {
      forgotten.add(id)
      if (forgotten.size > maxForgotten) forgotten.delete([...forgotten][0]!)
      return pending.delete(id)
    },
    result(id, name, result) {
      pending.delete(id)
      if (forgotten.delete(id)) return
      floor.expectReply()
      wire.answerTool(id, name, outputOf(result), true)
    },
    frame() {
      frames++
      if (pending.size === 0 || filled || frames < fillAfter) return
      if (!floor.isSilent() || floor.callerIsSpeaking()) return
      filled = true
      if (filler === null) return
      floor.expectReply()
      wire.say(filler)
    },
    isBusy: () => pending.size > 0,
  }
}

/** What the model is told of a result. */
const outputOf = ({ status, data, error }: ToolResult): JsonObject =>
  status === 'success'
    ? { ...data }
    : { error: error?.message ?? 'The tool failed.', code: error?.code ?? 'TOOL_FAILED' }
