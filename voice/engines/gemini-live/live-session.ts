/** Owns a session of Gemini Live that has been set up: what the provider says becomes events, and what the talk wants becomes messages. */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../model/clock.ts'
import type { VoiceDetector } from '../../../media/vad/voice-detector.ts'
import type { JsonSocket } from '../hosted/json-socket.ts'
import type { Wire, WireEvent } from '../hosted/wire.ts'
import type { Notices } from '../notices.ts'
import { createCallerView, type CallerView } from './caller-view.ts'
import { msOf, type ServerContent, type ServerMessage } from './messages.ts'
import { createModelSound } from './model-sound.ts'
import { createModelTurns, type ModelTurns } from './model-turns.ts'
import { createToldNews, type ToldNews } from './news.ts'
import { createPendingTools, type PendingTools } from './pending-tools.ts'
import type { News } from './setup.ts'
import { createSpokenReply } from './spoken-reply.ts'

type Deps = {
  readonly socket: JsonSocket
  readonly clock: Clock
  readonly tellOnce: Notices
  /** That the session was resumed by; null for a new one. */
  readonly handle: string | null
  /** Of the session before. */
  readonly news: readonly News[]
  createDetector(): VoiceDetector
  emit(event: WireEvent): void
}

type Parts = {
  readonly socket: JsonSocket
  readonly caller: CallerView
  readonly turns: ModelTurns
  readonly tools: PendingTools
  readonly news: ToldNews
  emit(event: WireEvent): void
  /** The provider has told when the connection ends. */
  ends(within: number): void
}

/** A connection lasts some ten minutes, and the provider may forget to tell that it ends. */
const expiresAfter = 9 * 60_000
const expiresWithin = 60_000
/** Without a time that can be read, the connection may go at any moment. */
const goAwayWithin = 10_000
const longestGoAway = 10 * 60_000

export function createLiveSession({ socket, clock, tellOnce, handle, news: before, createDetector, emit: tell }: Deps) {
  const id = randomUUID()
  let closed = false
  const emit = (event: WireEvent): void => {
    if (closed) return
    tell(event)
    if (event.type === 'user_speech_started') turns.callerStarts()
    if (event.type === 'user_speech_stopped') turns.callerStops()
  }
  const lost = (details: string, isRetryable: boolean): void => {
    emit({ type: 'failed', details, isRetryable })
    close()
  }
  const caller = createCallerView(createDetector(), emit)
  const news = createToldNews({ resumed: handle, before, remember: (memory) => emit({ type: 'memory', memory }) })
  const turns = createModelTurns({
    news,
    spoken: createSpokenReply({ session: id, emit, beforeDone: () => caller.texts.settle() }),
    sound: createModelSound((details) => lost(details, false)),
    sendText: (text) => !closed && socket.send({ realtimeInput: { text } }),
  })
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
  const parts: Parts = { socket, caller, turns, tools: createPendingTools(id), news, emit, ends }
  if (news.wantAnswer()) turns.askSoon(yourTurn)
  return {
    wire: { ...wordsOf(parts, tellOnce), hear, close } satisfies Wire,
    take(message: ServerMessage): void {
      if (!closed) takeMessage(parts, message)
    },
    lost,
  }

  function hear(payload: Uint8Array): void {
    if (closed) return
    const data = Buffer.from(payload).toString('base64')
    socket.send({ realtimeInput: { audio: { data, mimeType: 'audio/pcm;rate=16000' } } })
    caller.hear(payload)
    turns.frame()
  }
}

/** Texts come in the caller's place: the model must be able to tell them from the caller's words. */
const instruction = (text: string): string => `[Instruction, not said by the caller: ${text}]`
const sayExactly = instruction('say exactly the following, word for word, in its own language, and nothing else.')
const yourTurn = { kind: 'reply', text: instruction('it is your turn to speak now.') } as const

/** What the talk wants of the model. */
function wordsOf(parts: Parts, tellOnce: Notices): Omit<Wire, 'hear' | 'close'> {
  const { turns, news } = parts
  return {
    interrupt: () => turns.mute(),
    reply: (hint) => turns.ask(hint === null ? yourTurn : { kind: 'hinted reply', text: instruction(hint) }),
    say: (text) => turns.ask({ kind: 'words', text: `${sayExactly}\n${text}` }),
    tell: (text) => news.add({ text, wantsAnswer: true }),
    instruct(instructions) {
      tellOnce('the provider cannot change the instructions of a session: changes are told to the model as a text')
      const text = instruction(`from now on, follow these instructions as well: ${instructions}`)
      news.add({ text, wantsAnswer: false })
    },
    answerTool: (...answer) => answerTool(parts, ...answer),
  }
}

/** A result that cannot be given as one is news. One that is given is news to a session that goes on from before it. */
function answerTool({ tools, turns, news, socket }: Parts, ...answer: Parameters<Wire['answerTool']>): void {
  const [id, name, output, wantsReply] = answer
  const theirs = tools.end(id)
  const result: News = {
    text: instruction(`the tool ${name} has answered: ${JSON.stringify(output)}`),
    wantsAnswer: wantsReply,
  }
  const response = 'error' in output ? output : { output }
  // While a call blocks the model, the provider may pass over the scheduling.
  const scheduling = wantsReply ? {} : { scheduling: 'SILENT' }
  const functionResponses = [{ id: theirs, name, response, ...scheduling }]
  if (theirs !== null && socket.send({ toolResponse: { functionResponses } })) {
    news.addTold(result)
    if (tools.isEmpty()) turns.toolsAnswered(wantsReply)
    return
  }
  news.add(result)
  if (wantsReply) turns.askSoon(yourTurn)
  if (theirs !== null) turns.toolLost()
}

function takeMessage(parts: Parts, message: ServerMessage): void {
  const { caller, turns, tools, news, emit, ends } = parts
  const { serverContent, toolCall, toolCallCancellation, goAway, sessionResumptionUpdate, voiceActivity } = message
  if (voiceActivity?.voiceActivityType === 'ACTIVITY_START') caller.begins()
  if (voiceActivity?.voiceActivityType === 'ACTIVITY_END') caller.ends()
  if (serverContent) takeContent(parts, serverContent)
  for (const call of toolCall?.functionCalls ?? []) {
    if (call === null) continue
    turns.toolCalled()
    emit({
      type: 'tool_call',
      id: tools.begin(call.id),
      name: call.name,
      arguments: call.args === undefined ? {} : call.args,
    })
  }
  for (const theirs of toolCallCancellation?.ids ?? [])
    for (const id of tools.cancel(theirs)) emit({ type: 'tool_canceled', id })
  if (goAway) ends(Math.min(longestGoAway, msOf(goAway.timeLeft) ?? goAwayWithin))
  if (sessionResumptionUpdate?.resumable && sessionResumptionUpdate.newHandle)
    news.keep(sessionResumptionUpdate.newHandle)
}

function takeContent({ caller, turns }: Parts, content: ServerContent): void {
  const { inputTranscription: heard, interimInputTranscription: interim, modelTurn } = content
  const interrupted = content.interrupted && (caller.isNoticed() || !turns.brokeOff())
  if (interrupted) caller.begins()
  if (heard) caller.texts.add(heard.text ?? '', heard.finished ?? false)
  if (heard?.finished || (modelTurn && !interrupted)) caller.ends()
  if (interim?.text) caller.texts.guess(interim.text)
  turns.content({ ...content, interrupted })
}
