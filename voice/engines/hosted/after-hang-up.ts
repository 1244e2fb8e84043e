/**
 * Owns what still counts in a hosted talk whose caller has hung up: what they said, and what the model notes of it, until nothing more is to be waited
 * for. The agent says nothing more. Pure.
 */
import { endOfTalk, emit, followedBy, step } from './talk-state.ts'
import type { Advanced, TalkAction, TalkEvent, TalkSetting, TalkState } from './talk-state.ts'
import { areHeardOut, speechBegun, speechEnded, wordsAnswered, wordsTold } from './last-words.ts'
import { useOwnTool } from './own-tools.ts'
import { overForTools } from './tool-work.ts'
import { callerSpeech, replyBegun, replyEnded } from './turn-taking.ts'
import type { WireEvent } from './wire.ts'

export function afterHangUp(setting: TalkSetting, before: TalkState, event: TalkEvent): Advanced {
  const state = event.type === 'frame' ? { ...before, now: before.now + 1 } : before
  const heard = event.type === 'wire' ? saidLate(setting, state, event.event) : step(state)
  const { dimensions = [], nextActions = [] } = setting.worker
  return followedBy(heard, (next) => {
    const { phase, lastWords, turns, now } = next
    const isOver = areHeardOut(lastWords, turns, now, dimensions.length + nextActions.length > 0)
    return phase === 'hung_up' && isOver ? step(next, { phase: 'finished' }, { type: 'heard_out' }) : step(next)
  })
}

function saidLate(setting: TalkSetting, state: TalkState, event: WireEvent): Advanced {
  const { lastWords, turns, now } = state
  switch (event.type) {
    case 'user_speech_started':
      return step(state, { lastWords: speechBegun(lastWords, now), turns: callerSpeech(turns, true, now) }, emit(event))
    case 'user_speech_stopped':
      return step(
        state,
        { lastWords: speechEnded(lastWords, now), turns: callerSpeech(turns, false, now) },
        emit(event),
      )
    case 'user_text':
      return step(state, event.isFinal ? { lastWords: wordsTold(lastWords, event.text, now) } : {}, emit(event))
    case 'reply_started':
      return step(state, { lastWords: wordsAnswered(lastWords), turns: replyBegun(turns) })
    case 'reply_done':
      return step(state, { turns: replyEnded(turns) })
    case 'tool_call':
      return step(state, {}, ...whatIsNoted(setting, event), toolIsOver(event))
    case 'memory':
      return step(state, {}, emit(event))
    case 'failed':
      return endOfTalk(state, emit(event))
    case 'audio':
    case 'agent_text':
    case 'item_done':
    case 'tool_canceled':
    case 'expiring':
      return step(state)
  }
}

type ToolCall = Extract<WireEvent, { type: 'tool_call' }>

/** No tool of the worker is run for a caller who is gone. */
function whatIsNoted({ worker }: TalkSetting, { name, arguments: given }: ToolCall): TalkAction[] {
  const use = given && useOwnTool(worker, name, given)
  if (use?.kind === 'note') return [emit({ type: 'noted', key: use.key, value: use.value })]
  return use?.kind === 'end' ? [emit({ type: 'finished', nextAction: use.nextAction })] : []
}

const toolIsOver = ({ id, name }: ToolCall): TalkAction => ({
  type: 'answer_tool',
  id,
  name,
  output: overForTools,
  wantsReply: false,
})
