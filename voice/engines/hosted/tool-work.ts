/** Owns the worker's tools that a model has called and waits for: results go back once, canceled ones nowhere, and a caller who waits long hears a few words. */
import { frameMs } from '../../../model/frame.ts'
import type { JsonObject } from '../../../model/json.ts'
import type { ToolResult } from '../../../model/tool.ts'
import type { TurnTaking } from './turn-taking.ts'
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
  /** Nobody is told of their results any more; the model has its answers. */
  giveUp(): void
}

/** What a model is told of tools that it calls when nothing else is to be said. */
export const overForTools: JsonObject = { error: 'The call is over.' }

const fillAfter = 1_500 / frameMs
/** Of past calls, whose results may still come. */
const maxForgotten = 256

export function createToolWork({
  config,
  speaksWhileToolsRun,
  wire,
  turns,
}: Pick<TalkDeps, 'config' | 'speaksWhileToolsRun'> & { readonly wire: Wire; readonly turns: TurnTaking }): ToolWork {
  const pending = new Map<string, string>()
  const forgotten = new Set<string>()
  const filler = speaksWhileToolsRun ? fillerWordsOf(config.language) : null
  const forget = (id: string): void => {
    forgotten.add(id)
    if (forgotten.size > maxForgotten) forgotten.delete([...forgotten][0]!)
  }
  let frames = 0
  let filled = true

  return {
    begin(id, name) {
      if (pending.size === 0) {
        frames = 0
        filled = turns.hasSpoken()
      }
      pending.set(id, name)
    },
    canceled(id) {
      forget(id)
      return pending.delete(id)
    },
    result(id, name, result) {
      pending.delete(id)
      if (forgotten.delete(id)) return
      turns.expectReply()
      wire.answerTool(id, name, outputOf(result), true)
    },
    frame() {
      frames++
      if (pending.size === 0 || filled || frames < fillAfter) return
      if (!turns.isSilent() || turns.callerIsSpeaking()) return
      filled = true
      if (filler === null) return
      turns.expectReply()
      wire.say(filler)
    },
    isBusy: () => pending.size > 0,
    giveUp() {
      for (const [id, name] of pending) {
        wire.answerTool(id, name, overForTools, false)
        forget(id)
      }
      pending.clear()
    },
  }
}

/** What the model is told of a result. */
const outputOf = ({ status, data, error }: ToolResult): JsonObject =>
  status === 'success'
    ? { ...data }
    : { error: error?.message ?? 'The tool failed.', code: error?.code ?? 'TOOL_FAILED' }
