/**
 * Owns the rules of one hosted talk as a pure function: (state, event) → (state, actions). No wire, no clock, no randomness. What concerns one part
 * of the state only is decided in the file of that part; what concerns several is decided here.
 */
import { frameMs } from '../../../model/frame.ts'
import type { JsonObject } from '../../../model/json.ts'
import { afterHangUp } from './after-hang-up.ts'
import {
  endedByModel,
  endedBySilence,
  endedWithWords,
  endingAfterReply,
  endingHeard,
  endingReplied,
  endingSpokenOver,
  isDeaf,
  isDue,
  isMute,
  isOverAfterFrame,
} from './ending.ts'
import { idleAfterFrame, initialIdle } from './idle-prompts.ts'
import { initialKeys, isPressing, keyPressed } from './keys.ts'
import { lineClosed, speechBegun, speechEnded, wordsAnswered, wordsTold } from './last-words.ts'
import {
  announcedAs,
  greetingBegun,
  greetingHeard,
  isAnnouncing,
  isOpen,
  openingAfterFrame,
  openingBegun,
  openingPlayed,
  openingReplied,
  type Opened,
} from './opening.ts'
import { useOwnTool, type OwnToolUse } from './own-tools.ts'
import { tellKeys, tellTyped, toldKeys, toldLast } from './silent-words.ts'
import { initialResumption, resumptionAfterFrame, resumptionCut, resumptionHeard } from './resumption.ts'
import { asked, emit, endOfTalk, followedBy, step } from './talk-state.ts'
import type { Advanced, HeardPart, TalkAction, TalkEvent, TalkSetting, TalkState } from './talk-state.ts'
import {
  isBusy,
  isFillerDue,
  isForgotten,
  isPending,
  outputOf,
  overForTools,
  toolAnswered,
  toolCalled,
  toolForgotten,
  toolsFilled,
} from './tool-work.ts'
import {
  agentCutOff,
  agentSounded,
  callerSpeech,
  isQuiet,
  isSilent,
  itemPlayed,
  replyBegun,
  replyEnded,
  replyExpected,
  turnsAfterFrame,
} from './turn-taking.ts'
import { initialTyped, isTyping, textTyped } from './typed-words.ts'
import type { WireEvent } from './wire.ts'

const stillThere = 'The caller has said nothing for a while. Ask in a few words whether they are still there.'
const goOn =
  'That was a noise, not the caller. Go on with what you were saying where the caller last heard you; do not begin it anew.'
const goodbye = 'The caller does not answer any more. Say a short goodbye.'
const sayGoodbye: JsonObject = { ok: true, next: 'Say a short goodbye now, and nothing after it.' }

/** What the wire hears of the caller's next frame; null: nothing any more. What the provider still owes a finished talk may wait for frames. */
export function admittedBy({ phase, ending, opening }: TalkState): 'voice' | 'silence' | null {
  if (phase === 'closed') return null
  return phase === 'hung_up' || phase === 'finished' || isDeaf(ending) || isAnnouncing(opening) ? 'silence' : 'voice'
}

export function advance(setting: TalkSetting, state: TalkState, event: TalkEvent): Advanced {
  if (state.phase === 'closed') return step(state)
  if (event.type === 'closed') return endOfTalk(state)
  if (event.type === 'hung_up') return hungUp(state)
  if (state.phase === 'hung_up') return afterHangUp(setting, state, event)
  if (event.type === 'say_last') return saysLast(state, event.text)
  if (state.phase === 'finished') return event.type === 'wire' ? toldLate(state, event.event) : step(state)
  switch (event.type) {
    case 'begun':
      return opened(state, openingBegun(setting.opening, state.opening, state.now))
    case 'frame':
      return afterFrame(setting, state)
    case 'interrupted':
      return interrupted(setting, state, event.heard)
    case 'played':
      return played(setting, step(state, { turns: itemPlayed(state.turns, event.itemId) }))
    case 'dtmf':
      return pressed(state, event.digit)
    case 'typed':
      return tellTyped({ ...state, typed: textTyped(state.typed, event.text) })
    case 'say':
      return asked(state, { type: 'say', text: event.text })
    case 'tool_result':
      return answered(state, event)
    case 'instruct':
    case 'recall':
      return step(state, {}, event)
    case 'wire':
      return wireSaid(setting, state, event.event)
  }
}

/** What the caller said last may still be on its way as text: the session stays open until who hangs up closes it. */
const finished = (state: TalkState): Advanced =>
  step(state, { phase: 'finished' }, emit({ type: 'finished', nextAction: state.ending.due?.nextAction ?? null }))

function toldLate(state: TalkState, event: WireEvent): Advanced {
  if (event.type === 'failed') return endOfTalk(state)
  const isOfCaller = event.type === 'user_speech_stopped' || event.type === 'user_text'
  return isOfCaller ? step(state, {}, emit(event)) : step(state)
}

/** Keys that were pressed and words that were typed, and not told, are words, too. */
function hungUp(state: TalkState): Advanced {
  const { keys, typed, now } = state
  const untold = [...(isPressing(keys) ? toldKeys(state).actions : []), ...(isTyping(typed) ? toldLast(state) : [])]
  const told = untold.filter(({ type }) => type === 'emit')
  const lastWords = lineClosed(state.lastWords, now)
  return step(state, { phase: 'hung_up', keys: initialKeys, typed: initialTyped, lastWords }, ...told)
}

function saysLast(state: TalkState, text: string): Advanced {
  const { tools } = state
  const over = tools.pending.map(({ id, name }): TalkAction => toolAnswer(id, name, overForTools, false))
  const change: Partial<TalkState> = {
    phase: 'talking',
    ending: endedWithWords(state.ending),
    tools: tools.pending.reduce((left, { id }) => toolForgotten(left, id), tools),
  }
  return followedBy(step(state, change, ...over), (next) => asked(next, { type: 'say', text }))
}

const toolAnswer = (id: string, name: string, output: JsonObject, wantsReply: boolean): TalkAction => ({
  type: 'answer_tool',
  id,
  name,
  output,
  wantsReply,
})

function opened(state: TalkState, { opening, asks, isMisread }: Opened): Advanced {
  const message = 'the provider did not say the static message word for word'
  const told = step(state, { opening }, ...(isMisread ? [{ type: 'warn', message } as const] : []))
  return asks === null ? told : followedBy(told, (next) => asked(next, asks))
}

/** The caller has heard, or has lost, all that the agent has said. */
const heardOut = (setting: TalkSetting, state: TalkState): Advanced =>
  opened(state, openingPlayed(setting.opening, state.opening, state.now))

const played = (setting: TalkSetting, before: Advanced): Advanced =>
  followedBy(before, (state) => (isSilent(state.turns) ? heardOut(setting, state) : step(state)))

function interrupted(setting: TalkSetting, state: TalkState, heard: HeardPart): Advanced {
  const cut = { ...state, turns: agentCutOff(state.turns), resumption: resumptionCut(state.resumption) }
  return followedBy(heardOut(setting, cut), (next) => step(next, {}, { type: 'interrupt', heard }))
}

function pressed(state: TalkState, digit: string): Advanced {
  const { now, ending, opening } = state
  if (isDeaf(ending) || !isOpen(opening)) return step(state)
  // A key was pressed in the last frame that was heard.
  const at = Math.max(0, now - 1) * frameMs
  const first = isPressing(state.keys) ? [] : [emit({ type: 'user_speech_started', at })]
  const keys = keyPressed(state.keys, digit, now)
  return followedBy(step(state, { keys, idle: initialIdle, ending: endingSpokenOver(ending) }, ...first), tellKeys)
}

function answered(state: TalkState, { id, name, result }: Extract<TalkEvent, { type: 'tool_result' }>): Advanced {
  const next: TalkState = { ...state, tools: toolAnswered(state.tools, id) }
  return isForgotten(state.tools, id) ? step(next) : asked(next, toolAnswer(id, name, outputOf(result), true))
}

/** 20 ms of the caller's line have passed. */
function afterFrame(setting: TalkSetting, before: TalkState): Advanced {
  const now = before.now + 1
  const state: TalkState = { ...before, now, turns: turnsAfterFrame(before.turns, now) }
  if (isOverAfterFrame(state.ending, state)) return finished(state)
  if (isDeaf(state.ending)) return step(state)
  const going = opened(state, openingAfterFrame(setting.opening, state.opening, state.turns, now))
  const filled = followedBy(going, (next) => fill(setting, next))
  const told = followedBy(followedBy(filled, tellKeys), tellTyped)
  return followedBy(told, (next) => (isDue(next.ending) ? step(next) : afterSilence(next)))
}

function fill({ filler }: TalkSetting, state: TalkState): Advanced {
  if (!isFillerDue(state.tools, state.turns, state.now)) return step(state)
  const next: TalkState = { ...state, tools: toolsFilled(state.tools) }
  return filler === null ? step(next) : asked(next, { type: 'say', text: filler })
}

/** What is to be done about a line on which nobody says anything. */
function afterSilence(state: TalkState): Advanced {
  const { opening, keys, typed, tools, turns, now, ending } = state
  const quiet = isOpen(opening) && !isPressing(keys) && !isTyping(typed) && !isBusy(tools) && isQuiet(turns, now)
  const { resumption, goesOn } = resumptionAfterFrame(state.resumption, quiet)
  if (goesOn) return asked({ ...state, resumption }, { type: 'reply', hint: goOn })
  const { idle, wants } = idleAfterFrame(state.idle, quiet)
  const next: TalkState = { ...state, resumption, idle }
  if (wants === null) return step(next)
  if (wants === 'ask') return asked(next, { type: 'reply', hint: stillThere })
  return asked({ ...next, ending: endedBySilence(ending) }, { type: 'reply', hint: goodbye })
}

const isWords = ({ type }: WireEvent): boolean =>
  type === 'audio' || type === 'agent_text' || type === 'item_done' || type === 'tool_call'

function wireSaid(setting: TalkSetting, state: TalkState, event: WireEvent): Advanced {
  const { turns, opening, tools, ending, now } = state
  if (isMute(ending) && isWords(event)) return muted(state, event)
  switch (event.type) {
    case 'reply_started':
      return step(state, {
        resumption: initialResumption,
        opening: openingReplied(opening),
        ending: endingReplied(ending, event.says),
        turns: replyBegun(turns),
        lastWords: wordsAnswered(state.lastWords),
      })
    case 'reply_done':
      return replyDone(setting, { ...state, turns: replyEnded(turns) })
    case 'tool_call':
      return modelCalled(setting, state, event)
    case 'tool_canceled': {
      const told = isPending(tools, event.id) ? [emit(event)] : []
      return step(state, { tools: toolForgotten(tools, event.id) }, ...told)
    }
    case 'audio':
      return step(state, { turns: agentSounded(turns, event.itemId, now) }, emit(event))
    case 'agent_text':
      return step(state, { opening: announcedAs(opening, event.text) }, emit(event))
    case 'user_speech_started': {
      const change = { idle: initialIdle, opening: greetingBegun(opening), ending: endingSpokenOver(ending) }
      const lastWords = speechBegun(state.lastWords, now)
      return step(state, { ...change, lastWords, turns: callerSpeech(turns, true, now) }, emit(event))
    }
    case 'user_speech_stopped': {
      const lastWords = speechEnded(state.lastWords, now)
      return step(state, { lastWords, turns: callerSpeech(turns, false, now) }, emit(event))
    }
    case 'user_text':
      return step(state, event.isFinal ? heardText(state, event.text) : {}, emit(event))
    case 'failed':
      return endOfTalk(state, emit(event))
    case 'item_done':
    case 'memory':
    case 'expiring':
      return step(state, {}, emit(event))
  }
}

const heardText = ({ resumption, ending, opening, lastWords, now }: TalkState, text: string): Partial<TalkState> => ({
  lastWords: wordsTold(lastWords, text, now),
  resumption: resumptionHeard(resumption, text),
  ending: endingHeard(ending, text),
  opening: greetingHeard(opening, text),
})

/** A model that waits for the answer of a tool says nothing else before it has it. */
const muted = (state: TalkState, event: WireEvent): Advanced =>
  event.type === 'tool_call' ? step(state, {}, toolAnswer(event.id, event.name, overForTools, false)) : step(state)

function replyDone(setting: TalkSetting, state: TalkState): Advanced {
  const heard = state.turns.hasSpoken ? played(setting, step(state)) : step(state)
  return followedBy(heard, (next) => {
    const { ending, wants } = endingAfterReply(next.ending, next)
    const after: TalkState = { ...next, ending }
    if (wants === 'expect') return step(after, { turns: replyExpected(after.turns, after.now) })
    return wants === 'finish' ? finished(after) : step(after)
  })
}

function modelCalled(
  setting: TalkSetting,
  state: TalkState,
  call: Extract<WireEvent, { type: 'tool_call' }>,
): Advanced {
  const { id, name, arguments: given } = call
  if (given === null)
    return step(state, {}, toolAnswer(id, name, { error: 'The arguments must be a JSON object.' }, true))
  const use = useOwnTool(setting.worker, name, given)
  if (use !== null) return usedOwnTool(state, id, name, use)
  const tools = toolCalled(state.tools, id, name, state.turns.hasSpoken, state.now)
  return step(state, { tools }, emit({ type: 'tool_call', id, name, arguments: given }))
}

/** A model that has spoken in this turn has said what it wanted with it. */
function usedOwnTool(state: TalkState, id: string, name: string, use: OwnToolUse): Advanced {
  const isAgain = use.kind === 'end' && isDue(state.ending)
  const wantsReply = !state.turns.hasSpoken && !isAgain
  const turns = wantsReply ? replyExpected(state.turns, state.now) : state.turns
  switch (use.kind) {
    case 'wrong':
      return step(state, { turns }, toolAnswer(id, name, { error: use.message }, true))
    case 'note': {
      const noted = emit({ type: 'noted', key: use.key, value: use.value })
      return step(state, { turns }, noted, toolAnswer(id, name, { ok: true }, wantsReply))
    }
    case 'end': {
      const ending = endedByModel(state.ending, use.nextAction, wantsReply)
      return step(state, { turns, ending }, toolAnswer(id, name, wantsReply ? sayGoodbye : { ok: true }, wantsReply))
    }
  }
}
