/** Owns a session of Gemini Live that has been set up: what the provider says becomes events, and what the talk wants becomes messages. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../model/clock.ts'
import { samplesOf } from '../../../model/frame.ts'
import { createOwnEcho } from '../../../media/vad/own-echo.ts'
import type { VoiceDetector } from '../../../media/vad/voice-detector.ts'
import type { JsonSocket } from '../hosted/json-socket.ts'
import type { Wire, WireTold } from '../hosted/wire.ts'
import type { Notices } from '../notices.ts'
import { createCallerView } from './caller-view.ts'
import { createHeldResults, type Result } from './held-results.ts'
import { msOf, type FunctionCall, type ServerContent, type ServerMessage } from './messages.ts'
import { createModelSound, speaksHz } from './model-sound.ts'
import { createModelTurns } from './model-turns.ts'
import { createToldNews } from './news.ts'
import { createPendingTools } from './pending-tools.ts'
import { isBlocking, type News } from './setup.ts'
import { createSpokenReply } from './spoken-reply.ts'
import { usageIn } from './usage.ts'

type Deps = {
  readonly socket: JsonSocket
  readonly model: string
  readonly clock: Clock
  readonly tellOnce: Notices
  /** That the session was resumed by; null for a new one. */
  readonly handle: string | null
  /** Of the session before. */
  readonly news: readonly News[]
  /** Nobody hears what the model says. */
  readonly attends: boolean
  createDetector(): VoiceDetector
  emit(event: WireTold): void
}

/** A connection lasts some ten minutes, and the provider may forget to tell that it ends. */
const expiresAfter = 9 * 60_000
const expiresWithin = 60_000
/** Without a time that can be read, the connection may go at any moment. */
const goAwayWithin = 10_000
const longestGoAway = 10 * 60_000

/** Texts come in the caller's place: the model must be able to tell them from the caller's words. */
const instruction = (text: string): string => `[Instruction, not said by the caller: ${text}]`
const sayExactly = instruction('say exactly the following, word for word, in its own language, and nothing else.')
const wasSaid =
  'this was said earlier in this call, before you heard anything of it, and you learn it only now: go by it, and do not ask again for what it answers.'
const speakers = { user: 'The caller said:', agent: 'You said:' } as const
const yourTurn = { kind: 'reply', text: instruction('it is your turn to speak now.') } as const

export function createLiveSession(deps: Deps) {
  const { socket, model, clock, tellOnce, handle, news: before, createDetector, emit: tell } = deps
  const id = randomUUID()
  let closed = false
  let isLineClosed = false
  const echo = createOwnEcho(speaksHz)
  const emit = (event: WireTold): void => {
    if (closed || (deps.attends && event.type === 'audio')) return
    if (event.type === 'audio') echo.says(samplesOf(event.payload))
    tell(event)
    if (event.type === 'user_speech_started') turns.callerStarts()
    if (event.type === 'user_speech_stopped') turns.callerStops()
  }
  const lost = (details: string, isRetryable: boolean): void => {
    emit({ type: 'failed', details, isRetryable })
    close()
  }
  /** What is wrong with the session may be in what its handle stands for. */
  const giveUp = (): void => {
    emit({ type: 'memory', memory: null })
    lost('the model says nothing any more', true)
  }
  const caller = createCallerView(createDetector(), echo, emit)
  const tools = createPendingTools(id)
  const news = createToldNews({ resumed: handle, before, remember: (memory) => emit({ type: 'memory', memory }) })
  const turns = createModelTurns({
    news,
    spoken: createSpokenReply({ session: id, emit, beforeDone: () => caller.texts.settle() }),
    sound: createModelSound((details) => lost(details, false)),
    sendText: (text) => !closed && socket.send({ realtimeInput: { text } }),
    settleResults: () => held.modelSpeaks(),
    giveResults: () => held.modelWaits(),
    yourTurn,
    fellSilent: deps.attends ? null : giveUp,
  })
  const newsOf = ({ name, response }: Result, wantsAnswer: boolean): News => ({
    text: instruction(`the tool ${name} has answered: ${JSON.stringify(response)}`),
    wantsAnswer,
  })
  const give = (result: object): boolean => socket.send({ toolResponse: { functionResponses: [result] } })
  const held = createHeldResults((result, scheduling) => {
    const told = newsOf(result, scheduling !== 'SILENT')
    if (give({ ...result, scheduling })) news.addTold(told)
    else news.add(told)
  })
  /** The provider has told when the connection ends. */
  const ends = (within: number): void => {
    cancelExpiry()
    emit({ type: 'expiring', within })
  }
  const cancelExpiry = clock.after(expiresAfter, () => ends(expiresWithin))
  const close = (): void => {
    if (closed) return
    closed = true
    cancelExpiry()
    caller.close()
    socket.close()
  }
  /** A result that cannot be given as one is news. One that is given is news to a session that goes on from before it. */
  const answerTool: Wire['answerTool'] = (ours, name, output, wantsReply) => {
    const call = tools.end(ours)
    const result: Result = { id: call?.theirs ?? '', name, response: 'error' in output ? output : { output } }
    if (call?.isBlocking === false) {
      held.hold(result)
      // It has said what it wanted with the call.
      if (!wantsReply) held.modelSpeaks()
      return
    }
    const told = newsOf(result, wantsReply)
    if (call !== null && give(result)) {
      news.addTold(told)
      turns.toolAnswered(wantsReply, tools.areSettled())
      return
    }
    news.add(told)
    if (wantsReply) turns.askSoon(yourTurn)
    if (call !== null) turns.toolLost()
  }
  const takeContent = (content: ServerContent): void => {
    const { inputTranscription: heard, interimInputTranscription: interim, modelTurn } = content
    const interrupted = content.interrupted && (caller.isNoticed() || !turns.brokeOff())
    if (interrupted) caller.begins()
    if (heard) caller.texts.add(heard.text ?? '', heard.finished ?? false)
    if (heard?.finished || (modelTurn && !interrupted)) caller.ends()
    if (interim?.text) caller.texts.guess(interim.text)
    turns.content({ ...content, interrupted })
  }
  /** All of them are known before one is told, which may be answered at once. */
  const takeCalls = (calls: readonly FunctionCall[]): void => {
    const begun = calls.flatMap((call) => {
      if (call === null) return []
      const blocks = isBlocking(model, call.name)
      turns.toolCalled(blocks)
      const given = call.args === undefined ? {} : call.args
      return [{ id: tools.begin(call.id, blocks), name: call.name, arguments: given }]
    })
    for (const call of begun) emit({ type: 'tool_call', ...call })
  }
  if (news.wantAnswer()) turns.askSoon(yourTurn)
  return {
    wire: {
      hear(payload) {
        if (closed) return
        const data = Buffer.from(payload).toString('base64')
        // Sound opens the stream again.
        if (!isLineClosed) socket.send({ realtimeInput: { audio: { data, mimeType: 'audio/pcm;rate=16000' } } })
        caller.hear(payload)
        if (held.frame()) turns.toolAnswered(true, true)
        turns.frame()
      },
      lineClosed() {
        isLineClosed = true
        if (!closed) socket.send({ realtimeInput: { audioStreamEnd: true } })
      },
      interrupt() {
        echo.cut()
        turns.mute()
      },
      reply: (hint) => turns.ask(hint === null ? yourTurn : { kind: 'hinted reply', text: instruction(hint) }),
      say: (text) => turns.ask({ kind: 'words', text: `${sayExactly}\n${text}` }),
      tell: (text) => news.add({ text, wantsAnswer: true }),
      instruct(instructions, added = instructions) {
        tellOnce('the provider cannot change the instructions of a session: changes are told to the model as a text')
        const text = instruction(`from now on, follow these instructions as well: ${added}`)
        news.add({ text, wantsAnswer: false })
      },
      recall: ({ role, text }) =>
        news.add({ text: instruction(`${wasSaid} ${speakers[role]} ${JSON.stringify(text)}`), wantsAnswer: false }),
      answerTool,
      close,
    } satisfies Wire,
    take(message: ServerMessage): void {
      if (closed) return
      const { serverContent, toolCall, toolCallCancellation, goAway, sessionResumptionUpdate, voiceActivity } = message
      const units = usageIn(message.usageMetadata)
      if (units !== null) emit({ type: 'used', model, units })
      if (voiceActivity?.voiceActivityType === 'ACTIVITY_START') caller.begins()
      if (voiceActivity?.voiceActivityType === 'ACTIVITY_END') caller.ends()
      if (serverContent) takeContent(serverContent)
      if (toolCall) takeCalls(toolCall.functionCalls)
      for (const theirs of toolCallCancellation?.ids ?? [])
        for (const ours of tools.cancel(theirs)) emit({ type: 'tool_canceled', id: ours })
      if (goAway) ends(Math.min(longestGoAway, msOf(goAway.timeLeft) ?? goAwayWithin))
      if (sessionResumptionUpdate?.resumable && sessionResumptionUpdate.newHandle)
        news.keep(sessionResumptionUpdate.newHandle)
    },
    lost,
  }
}
