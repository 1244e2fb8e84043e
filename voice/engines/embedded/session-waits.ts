/** Owns what waits in a call: how long a caller is silent or a tool is slow, and results of tools while the caller speaks. */
import { frameMs } from '../../../model/frame.ts'
import type { ToolResult } from '../../../model/tool.ts'
import type { AgentSpeech } from './agent-speech.ts'
import type { ScriptRun } from './script-run.ts'

const maxHeld = 16

/** Counts frames in which nothing happens. */
export function createSilenceTimer(run: ScriptRun, speech: AgentSpeech) {
  let quiet = 0
  return {
    renew(): void {
      quiet = 0
    },
    frame(): void {
      const limit = run.silenceLimit()
      quiet = limit === null || speech.speaking() ? 0 : quiet + frameMs
      if (limit === null || quiet < limit) return
      quiet = 0
      run.dispatch({ type: 'silence' })
    },
  }
}

/** The caller's words come first: they may be what the tool is left for. */
export function createHeldResults(run: ScriptRun) {
  let held: { readonly id: string; readonly result: ToolResult }[] = []
  return {
    hold(id: string, result: ToolResult): void {
      if (held.length < maxHeld) held.push({ id, result })
    },
    release(): void {
      for (const { id, result } of held.splice(0)) run.dispatch({ type: 'tool_result', id, result })
    },
  }
}
