/**
 * Owns one call of a hosted engine, whoever the provider is: what comes from the session and from the wire goes into the talk's machine
 * (talk-machine.ts), and what that wants is asked of the wire and told. The words are the model's.
 */
import { maxWhispers } from '../../../model/supervision.ts'
import type { Cancel, Clock } from '../../../model/clock.ts'
import { frameMs } from '../../../model/frame.ts'
import type { Log } from '../../../model/log.ts'
import type { EngineConfig, EngineEvent, EngineSession } from '../../../model/voice-engine.ts'
import { silenceOf } from '../../../media/codecs/silence.ts'
import { todayOf } from '../../script/today.ts'
import { voicemailMessageOf } from '../../script/voicemail-message.ts'
import { fillerWordsOf } from './filler-words.ts'
import { silenceAtOnce } from './last-words.ts'
import { openingSettingOf } from './opening.ts'
import { ownToolsOf } from './own-tools.ts'
import { promptOf } from './prompt.ts'
import { whispered, withWhispers } from './whispers.ts'
import { admittedBy, advance } from './talk-machine.ts'
import { initialTalk, type TalkAction, type TalkEvent, type TalkSetting } from './talk-state.ts'
import type { OpenWire, Wire, WireTold } from './wire.ts'

export type TalkDeps = {
  readonly config: EngineConfig
  readonly openWire: OpenWire
  /** The provider says words while it waits for a tool: then a filler is asked for. */
  readonly speaksWhileToolsRun: boolean
  readonly log: Log
  readonly clock: Clock
  emit(event: EngineEvent): void
}

/** What the wire may say before the session is in the hands of who opened it. */
const maxEarly = 1_000

/** Rejects with EngineRefusal. */
export async function openTalk(deps: TalkDeps): Promise<EngineSession> {
  const { instructions: _, script: __, context: ___, customer: ____, ...line } = deps.config
  const tools = [...deps.config.tools, ...ownToolsOf(deps.config.worker)]
  const early: WireTold[] = []
  let take = (event: WireTold): void => {
    if (early.length < maxEarly) early.push(event)
  }
  const prompt = promptOf(deps.config, todayOf(deps.clock.now(), deps.config))
  const whispers = [...(deps.config.whispers ?? [])]
  const wire = await deps.openWire({ ...line, tools, instructions: withWhispers(prompt, whispers) }, (event) =>
    take(event),
  )
  const whisper = (text: string): string => {
    whispers.splice(0, Math.max(0, whispers.length + 1 - maxWhispers))
    whispers.push(text)
    return withWhispers(prompt, whispers)
  }
  const talk = createTalk(deps, wire, whisper)
  setImmediate(() => {
    take = talk.take
    early.splice(0).forEach(talk.take)
    talk.begin()
  })
  return talk.session
}

/** `instructionsWith`: the whole prompt with one more whisper. */
function createTalk(
  { config, speaksWhileToolsRun, clock, log, emit }: TalkDeps,
  wire: Wire,
  instructionsWith: (whisper: string) => string,
) {
  const setting: TalkSetting = {
    worker: config.worker,
    opening: openingSettingOf(config),
    filler: speaksWhileToolsRun ? fillerWordsOf(config.language) : null,
  }
  const silence = silenceOf(config.formats.hears)
  let state = initialTalk
  let isClosed = false
  const heardOut = Promise.withResolvers<void>()
  let nextFrame: Cancel | null = null

  const perform = (action: TalkAction): void => {
    // Whoever was told of an event before this action may have closed the talk.
    if (isClosed) return
    switch (action.type) {
      case 'emit':
        return emit(action.event)
      case 'reply':
        return wire.reply(action.hint)
      case 'say':
        return wire.say(action.text)
      case 'tell':
        return wire.tell(action.text)
      case 'answer_tool':
        return wire.answerTool(action.id, action.name, action.output, action.wantsReply)
      case 'interrupt':
        return wire.interrupt(action.heard)
      case 'instruct':
        return wire.instruct(action.instructions, action.added)
      case 'recall':
        return wire.recall(action.said)
      case 'warn':
        return log.warn(action.message, { callId: config.callId })
      case 'heard_out':
        return endHearing()
      case 'close':
        isClosed = true
        endHearing()
        return wire.close()
    }
  }
  const dispatch = (event: TalkEvent): void => {
    const { state: next, actions } = advance(setting, state, event)
    state = next
    actions.forEach(perform)
  }
  const hear = (payload: Uint8Array): void => {
    const admitted = admittedBy(state)
    if (admitted === null) return
    wire.hear(admitted === 'voice' ? payload : silence)
    dispatch({ type: 'frame' })
  }
  const endHearing = (): void => {
    nextFrame?.()
    heardOut.resolve()
  }
  /** A line that is closed goes on as silence, by which providers and their waits go on as well. */
  const hearSilence = (): void => {
    nextFrame = clock.after(frameMs, hearSilence)
    hear(silence)
  }
  const session: EngineSession = {
    hear,
    hearOut() {
      if (isClosed || nextFrame !== null) return heardOut.promise
      dispatch({ type: 'hung_up' })
      for (let left = silenceAtOnce; left > 0; left--) hear(silence)
      wire.lineClosed()
      hearSilence()
      return heardOut.promise
    },
    interrupt: (heard) => dispatch({ type: 'interrupted', heard }),
    played: (itemId) => dispatch({ type: 'played', itemId }),
    typed: (text) => dispatch({ type: 'typed', text }),
    dtmf: (digit) => dispatch({ type: 'dtmf', digit }),
    say: (text) => dispatch({ type: 'say', text }),
    voicemail: voicemailMessageOf(config),
    sayLast: (text) => dispatch({ type: 'say_last', text }),
    toolResult: (id, name, result) => dispatch({ type: 'tool_result', id, name, result }),
    instruct: (instructions) => dispatch({ type: 'instruct', instructions }),
    whisper: (text) => dispatch({ type: 'instruct', instructions: instructionsWith(text), added: whispered(text) }),
    recall: (said) => dispatch({ type: 'recall', said }),
    close: () => dispatch({ type: 'closed' }),
  }
  return {
    session,
    begin: () => dispatch({ type: 'begun' }),
    take: (event: WireTold) => (event.type === 'used' ? emit(event) : dispatch({ type: 'wire', event })),
  }
}
