/**
 * Owns one call of a hosted engine, whoever the provider is: who speaks first, what is heard to its end, silence, keys, the engine's own tools, and
 * the end. The words are the model's. Everything that waits counts frames of the caller's line, not a clock.
 */
import type { JsonObject } from '../../../model/json.ts'
import { frameMs } from '../../../model/frame.ts'
import type { EngineEvent, EngineSession } from '../../../model/voice-engine.ts'
import { silenceOf } from '../../../media/codecs/silence.ts'
import { todayOf } from '../../script/today.ts'
import { voicemailMessageOf } from '../../script/voicemail-message.ts'
import { createEnding, type Ending } from './ending.ts'
import { createTurnTaking, type TurnTaking } from './turn-taking.ts'
import { createKeys, type Keys } from './keys.ts'
import { createOpening, type Opening } from './opening.ts'
import { ownToolsOf, useOwnTool } from './own-tools.ts'
import { createIdlePrompts, type IdlePrompts } from './idle-prompts.ts'
import { promptOf } from './prompt.ts'
import { createResumption, type Resumption } from './resumption.ts'
import type { TalkDeps } from './talk-deps.ts'
import { createToolWork, overForTools, type ToolWork } from './tool-work.ts'
import type { Wire, WireEvent } from './wire.ts'

/** What the wire may say before the session is in the hands of who opened it. */
const maxEarly = 1_000
const stillThere = 'The caller has said nothing for a while. Ask in a few words whether they are still there.'
const goOn =
  'That was a noise, not the caller. Go on with what you were saying where the caller last heard you; do not begin it anew.'
const goodbye = 'The caller does not answer any more. Say a short goodbye.'

/** Rejects with EngineRefusal. */
export async function openTalk(deps: TalkDeps): Promise<EngineSession> {
  const { instructions: _, script: __, context: ___, customer: ____, ...line } = deps.config
  const tools = [...deps.config.tools, ...ownToolsOf(deps.config.worker)]
  const early: WireEvent[] = []
  let take = (event: WireEvent): void => {
    if (early.length < maxEarly) early.push(event)
  }
  const wire = await deps.openWire(
    { ...line, tools, instructions: promptOf(deps.config, todayOf(deps.clock.now(), deps.config)) },
    (event) => take(event),
  )
  const talk = createTalk(deps, wire)
  setImmediate(() => {
    take = talk.take
    early.splice(0).forEach(talk.take)
    talk.begin()
  })
  return talk.session
}

/** What the parts of a talk share. */
type Talk = {
  readonly deps: TalkDeps
  readonly wire: Wire
  readonly turns: TurnTaking
  readonly opening: Opening
  readonly work: ToolWork
  readonly keys: Keys
  readonly idle: IdlePrompts
  readonly resumption: Resumption
  readonly ending: Ending
  /** `finished`: what the caller said is still told, and no more. */
  phase: 'talking' | 'finished' | 'closed'
}

function createTalk(deps: TalkDeps, wire: Wire) {
  let frames = 0
  const turns = createTurnTaking()
  const work = createToolWork({ ...deps, wire, turns })
  const keys = createKeys((text) => {
    const at = frames * frameMs
    emit(talk, { type: 'user_speech_stopped', at })
    emit(talk, { type: 'user_text', text, isFinal: true, confidence: null, from: at, to: at })
    wire.tell(text)
    wire.reply(null)
  })
  const talk: Talk = {
    deps,
    wire,
    turns,
    opening: createOpening({ ...deps, wire, turns }),
    work,
    keys,
    idle: createIdlePrompts(),
    resumption: createResumption(),
    ending: createEnding({ turns, work, finish: (nextAction) => finish(talk, nextAction) }),
    phase: 'talking',
  }
  return {
    session: sessionOf(talk, () => frames++ * frameMs),
    begin(): void {
      if (talk.phase === 'talking') talk.opening.begin()
    },
    take(event: WireEvent): void {
      if (talk.phase === 'talking') takeEvent(talk, event)
      else if (event.type === 'user_speech_stopped' || event.type === 'user_text') emit(talk, event)
      if (event.type === 'failed') close(talk)
    },
  }
}

/** `tick` counts the frames of the line. */
function sessionOf(talk: Talk, tick: () => number): EngineSession {
  const { wire, turns, opening, work, keys, idle, resumption, ending } = talk
  const isOver = (): boolean => talk.phase !== 'talking'
  const silence = silenceOf(talk.deps.config.formats.hears)
  let at = 0
  return {
    hear(payload) {
      // What the provider still owes may wait for frames of the line.
      if (talk.phase === 'finished') wire.hear(silence)
      if (isOver()) return
      at = tick()
      wire.hear(ending.isDeaf() ? silence : opening.admit(payload))
      countFrame(talk)
    },
    interrupt(heard) {
      if (isOver()) return
      turns.cut()
      resumption.cut()
      opening.playedAll()
      wire.interrupt(heard)
    },
    played(itemId) {
      turns.played(itemId)
      if (!isOver() && turns.isSilent()) opening.playedAll()
    },
    dtmf(digit) {
      if (isOver() || ending.isDeaf() || !opening.isOver()) return
      if (!keys.waiting()) emit(talk, { type: 'user_speech_started', at })
      idle.renew()
      ending.callerSpoke()
      keys.press(digit)
    },
    say(text) {
      if (isOver()) return
      turns.expectReply()
      wire.say(text)
    },
    voicemail: voicemailMessageOf(talk.deps.config),
    sayLast(text) {
      if (talk.phase === 'closed') return
      talk.phase = 'talking'
      ending.withWords()
      work.giveUp()
      turns.expectReply()
      wire.say(text)
    },
    toolResult(id, name, result) {
      if (!isOver()) work.result(id, name, result)
    },
    instruct(instructions) {
      if (!isOver()) wire.instruct(instructions)
    },
    close: () => close(talk),
  }
}

function emit({ phase, deps }: Talk, event: EngineEvent): void {
  if (phase !== 'closed') deps.emit(event)
}

function close(talk: Talk): void {
  talk.phase = 'closed'
  talk.wire.close()
}

/** 20 ms of the caller's line have passed. */
function countFrame(talk: Talk): void {
  const { turns, opening, work, keys, idle, resumption, ending } = talk
  turns.frame()
  ending.frame()
  if (talk.phase !== 'talking' || ending.isDeaf()) return
  for (const part of [opening, work, keys]) part.frame()
  if (ending.isDue()) return
  const isQuiet = opening.isOver() && !keys.waiting() && !work.isBusy() && turns.isQuiet()
  if (resumption.frame(isQuiet)) return ask(talk, goOn)
  const step = idle.frame(isQuiet)
  if (step === null) return
  if (step === 'give up') ending.bySilence()
  ask(talk, step === 'give up' ? goodbye : stillThere)
}

function ask({ turns, wire }: Talk, hint: string): void {
  turns.expectReply()
  wire.reply(hint)
}

const isWords = ({ type }: WireEvent): boolean =>
  type === 'audio' || type === 'agent_text' || type === 'item_done' || type === 'tool_call'

/** A model that waits for the answer of a tool says nothing else before it has it. */
function muted({ wire }: Talk, event: WireEvent): void {
  if (event.type === 'tool_call') wire.answerTool(event.id, event.name, overForTools, false)
}

function takeEvent(talk: Talk, event: WireEvent): void {
  const { turns, opening, work, idle, resumption, ending } = talk
  if (ending.isMute() && isWords(event)) return muted(talk, event)
  switch (event.type) {
    case 'reply_started':
      resumption.replyStarted()
      opening.replyStarted()
      ending.replyStarted(event.says)
      return turns.replyStarted()
    case 'reply_done':
      turns.replyDone()
      if (turns.hasSpoken() && turns.isSilent()) opening.playedAll()
      return ending.replyDone()
    case 'tool_call':
      return takeToolCall(talk, event)
    case 'tool_canceled':
      if (work.canceled(event.id)) emit(talk, event)
      return
    case 'audio':
      turns.sound(event.itemId)
      return emit(talk, event)
    case 'agent_text':
      opening.said(event.text)
      return emit(talk, event)
    case 'user_speech_started':
      idle.renew()
      opening.callerSpoke()
      ending.callerSpoke()
      turns.callerSpeaks(true)
      return emit(talk, event)
    case 'user_speech_stopped':
      turns.callerSpeaks(false)
      return emit(talk, event)
    case 'user_text':
      if (event.isFinal) {
        resumption.heard(event.text)
        ending.heard(event.text)
        opening.heard(event.text)
      }
      return emit(talk, event)
    case 'item_done':
    case 'memory':
    case 'expiring':
    case 'failed':
      return emit(talk, event)
  }
}

function takeToolCall(talk: Talk, { id, name, arguments: given }: Extract<WireEvent, { type: 'tool_call' }>): void {
  const { wire, work, deps, turns } = talk
  if (given === null) return wire.answerTool(id, name, { error: 'The arguments must be a JSON object.' }, true)
  const use = useOwnTool(deps.config.worker, name, given)
  if (use === null) {
    work.begin(id, name)
    return emit(talk, { type: 'tool_call', id, name, arguments: given })
  }
  // A model that has spoken in this turn has said what it wanted with it.
  const isAgain = use.kind === 'end' && talk.ending.isDue()
  const wantsReply = !turns.hasSpoken() && !isAgain
  if (wantsReply) turns.expectReply()
  if (use.kind === 'wrong') return wire.answerTool(id, name, { error: use.message }, true)
  if (use.kind === 'note') emit(talk, { type: 'noted', key: use.key, value: use.value })
  if (use.kind === 'end') talk.ending.byModel(use.nextAction, wantsReply)
  wire.answerTool(id, name, use.kind === 'end' && wantsReply ? sayGoodbye : { ok: true }, wantsReply)
}

const sayGoodbye: JsonObject = { ok: true, next: 'Say a short goodbye now, and nothing after it.' }

/** What the caller said last may still be on its way as text: the session stays open until who hangs up closes it. */
function finish(talk: Talk, nextAction: string | null): void {
  talk.phase = 'finished'
  emit(talk, { type: 'finished', nextAction })
}
