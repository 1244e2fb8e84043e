/** Owns a session with OpenAI Realtime (the GA protocol) as a wire of a hosted talk. docs/design/voice.md "Hosted engines". */
import type { Clock } from '../../../model/clock.ts'
import { frameMs } from '../../../model/frame.ts'
import type { Log } from '../../../model/log.ts'
import { EngineRefusal } from '../../../model/voice-engine.ts'
import { openJsonSocket, type JsonSocket } from '../hosted/json-socket.ts'
import { transcriptionLanguageOf } from '../hosted/transcription-language.ts'
import type { Wire, WireSetup, WireTold } from '../hosted/wire.ts'
import type { Notices } from '../notices.ts'
import { createAgentItems } from './agent-items.ts'
import { createCallerTurns } from './caller-turns.ts'
import { createEarlierItems, type EarlierItems } from './earlier-items.ts'
import { codeOf, isFatal, isPassing, nameOf } from './error-codes.ts'
import { objectOf, textOf, type Message } from './fields.ts'
import { createInbox, type Inbox } from './inbox.ts'
import { createLineClock } from './line-clock.ts'
import { createReplies } from './replies.ts'
import { historyWithin, itemOf, paddingOf, sessionUpdate } from './setup.ts'
import type { ReasoningEffort, TurnDetection } from './setup.ts'
import { promptSizeOf } from './token-limits.ts'
import { createToolCalls } from './tool-calls.ts'
import { usageIn } from './usage.ts'

export type Provider = {
  /** Without the query. */
  readonly url: string
  readonly apiKey: string
  readonly model: string
  /** Null: the provider's own choice. */
  readonly voice: string | null
  readonly transcriptionModel: string
  /** Null, or not there: the model's own choice. */
  readonly reasoningEffort?: ReasoningEffort | null
  /** Not there: `server_vad`. */
  readonly turnDetection?: TurnDetection
}

type Deps = { readonly provider: Provider; readonly clock: Clock; readonly log: Log; readonly notices: Notices }
type Emit = (event: WireTold) => void

const setupTimeout = 10_000
/** The provider ends a session after an hour; when it does not say when, this is told before. */
const sessionMs = 60 * 60_000
const tellBefore = 5 * 60_000
/** No call is as long; a timer of more than 24 days would ring at once. */
const longestSessionMs = 24 * 60 * 60_000
const maxCodesTold = 32
/** A provider that has not ended the turn by then, behind a line that was closed, does not know that it is over. */
const commitAfter = 400 / frameMs
const bySound: TurnDetection = { type: 'server_vad' }

/** Rejects with EngineRefusal. */
export async function openOpenAiWire(deps: Deps, setup: WireSetup, emit: Emit): Promise<Wire> {
  const { provider, clock } = deps
  const { historyTokens, tooLong } = promptSizeOf(provider.model, setup)
  if (tooLong?.isHopeless) throw new EngineRefusal(tooLong.message, false)
  if (tooLong) deps.log.warn(tooLong.message, { callId: setup.callId })
  // The provider may speak before the socket is in our hands, and on when it has taken the configuration.
  const inbox = createInbox<Message>()
  const url = `${provider.url}${provider.url.includes('?') ? '&' : '?'}model=${encodeURIComponent(provider.model)}`
  const socket = await openJsonSocket({
    url,
    headers: { authorization: `Bearer ${provider.apiKey}` },
    key: provider.apiKey,
    clock,
    onMessage: inbox.message,
    onLost: (details) => inbox.lost(details),
  })
  try {
    const expiresAt = await setUp(deps, setup, socket, inbox)
    const earlier = createEarlierItems((message) => void socket.send(message))
    historyWithin(setup.history, historyTokens).forEach(earlier.add)
    const session = createWire(deps, setup, { socket, expiresAt, earlier }, emit)
    inbox.open(session.take, (details) => session.fail(details, true))
    return session.wire
  } catch (error) {
    socket.close()
    throw error
  }
}

/** Resolves, when the provider has taken the configuration, with the time it ends the session at. What comes after that is left in the inbox. */
function setUp(deps: Deps, setup: WireSetup, socket: JsonSocket, inbox: Inbox<Message>): Promise<number> {
  const { clock, notices, provider } = deps
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let voice = setup.worker.voiceId ?? provider.voice
  let reasoning = provider.reasoningEffort ?? null
  let language = transcriptionLanguageOf(setup.language)
  const { transcriptionModel, turnDetection = bySound } = provider
  let expiresAt = clock.now() + sessionMs
  const update = (): boolean =>
    socket.send(sessionUpdate(setup, { transcriptionModel, language, voice, reasoning, turnDetection }))
  const refuse = (details: string, isRetryable: boolean): void => reject(new EngineRefusal(details, isRetryable))
  const refused = (error: Message): void => {
    const [code, param] = [textOf(error.code), textOf(error.param)]
    if (reasoning !== null && param.includes('reasoning')) {
      notices(
        `the model ${provider.model} does not take a reasoning effort: OPENAI_REALTIME_REASONING_EFFORT is ignored`,
      )
      reasoning = null
      update()
      return
    }
    if (language !== null && param.includes('transcription.language')) {
      notices(
        `the transcription model ${transcriptionModel} does not know the language "${language}": it finds out which`,
      )
      language = null
      update()
      return
    }
    if (param.endsWith('audio.output.voice') && setup.worker.voiceId !== undefined && voice !== provider.voice) {
      notices(`the provider has no voice "${setup.worker.voiceId}" (voiceId) and speaks with the engine's own`)
      voice = provider.voice
      update()
      return
    }
    const reason = [codeOf(error), nameOf(error.param)].filter((name) => name !== '').join(', ')
    refuse(`the provider refused the session: ${reason}`, !isFatal(code) && isPassing(code, textOf(error.type)))
  }
  inbox.open(
    (message) => {
      if (message.type === 'session.created') expiresAt = expiryOf(message, clock.now()) ?? expiresAt
      if (message.type === 'error') refused(objectOf(message.error))
      if (message.type !== 'session.updated') return
      inbox.hold()
      resolve(expiresAt)
    },
    (details) => refuse(details, true),
  )
  const cancel = clock.after(setupTimeout, () => refuse('the provider did not take the session in time', true))
  update()
  return promise.finally(cancel)
}

/** Null: it says nothing that can be. A session that has just begun is not over: then one of the clocks is wrong. */
function expiryOf({ session }: Message, now: number): number | null {
  const { expires_at } = objectOf(session)
  if (typeof expires_at !== 'number' || expires_at * 1000 <= now) return null
  return Math.min(expires_at * 1000, now + longestSessionMs)
}

/** What stands after it is said and nothing else. */
const sayExactly = 'Say exactly the following text, word for word, and nothing else. Call no function. The text:'

type Opened = {
  readonly socket: JsonSocket
  readonly expiresAt: number
  readonly earlier: EarlierItems
}

function createWire(
  { provider, clock, log }: Deps,
  setup: WireSetup,
  { socket, expiresAt, earlier }: Opened,
  emitAll: Emit,
) {
  let closed = false
  let { instructions } = setup
  const codesTold = new Set<string>()
  /** Since the caller's line was closed; null while it is open. */
  let silentFrames: number | null = null
  const send = (message: object): void => void socket.send(message)
  const close = (): void => {
    closed = true
    cancelExpiry()
    socket.close()
  }
  const emit: Emit = (event) => {
    if (closed) return
    if (event.type === 'failed') close()
    emitAll(event)
  }
  const fail = (details: string, isRetryable: boolean): void => emit({ type: 'failed', details, isRetryable })
  const cancelExpiry = clock.after(Math.max(0, expiresAt - clock.now() - tellBefore), () =>
    emit({ type: 'expiring', within: Math.max(0, expiresAt - clock.now()) }),
  )
  const line = createLineClock()
  const turns = createCallerTurns({ line, padding: paddingOf(provider.turnDetection ?? bySound), emit })
  const items = createAgentItems({ format: setup.formats.speaks, send, emit })
  const tools = createToolCalls({ send, emit, onCalled: () => replies.called() })
  const replies = createReplies({
    send,
    emit,
    toolsAtWork: tools.atWork,
    onBegun(responseId) {
      items.replyBegun(responseId)
      tools.replyBegun()
    },
    onCut: items.cutReply,
    onDone: items.replyDone,
  })
  const used = (model: string, { usage }: Message): void => {
    const units = usageIn(usage)
    if (units !== null) emit({ type: 'used', model, units })
  }
  /** Most errors are of one request and leave the session as it is. */
  const refused = (error: Message): void => {
    const code = textOf(error.code)
    if (isFatal(code)) return fail(`the provider ended the session (${code})`, false)
    if (code === 'session_expired') return fail('the session has reached its longest time', true)
    if (replies.refused(error) || codesTold.has(code) || codesTold.size >= maxCodesTold) return
    codesTold.add(code)
    const [type, param] = [nameOf(error.type), nameOf(error.param)]
    log.warn('the provider refused a request of a call', { code: nameOf(code), type, param })
  }
  const takers: ReadonlyMap<string, (message: Message) => void> = new Map(
    Object.entries({
      'input_audio_buffer.speech_started': (message) => {
        replies.callerSpeaks()
        turns.started(message)
      },
      'input_audio_buffer.speech_stopped': (message) => {
        turns.stopped(message)
        replies.callerStopped()
      },
      'input_audio_buffer.committed': (message) => {
        turns.committed(message)
        tools.cancelAll()
      },
      'conversation.item.input_audio_transcription.delta': turns.partText,
      'conversation.item.input_audio_transcription.completed': (message) => {
        used(provider.transcriptionModel, message)
        turns.finalText(message)
      },
      'conversation.item.input_audio_transcription.failed': turns.noText,
      'response.created': replies.created,
      'response.output_item.added': items.added,
      'response.output_audio.delta': (message) => {
        if (items.sound(message)) replies.sounded()
      },
      'response.output_audio_transcript.delta': items.partText,
      'response.output_audio_transcript.done': items.finalText,
      'response.function_call_arguments.done': tools.written,
      'response.output_item.done': (message) => {
        items.done(message)
        tools.itemDone(objectOf(message.item))
      },
      'response.done': (message) => {
        used(provider.model, objectOf(message.response))
        tools.responseDone(objectOf(message.response))
        replies.done(message)
      },
      error: (message) => refused(objectOf(message.error)),
    } satisfies Record<string, (message: Message) => void>),
  )
  /** Silence alone need not end a turn: `semantic_vad` waits for more words. */
  const commit = (): void => {
    if (!turns.end()) return
    send({ type: 'input_audio_buffer.commit' })
    if (!setup.attends) replies.ask({ instructions: null, isOwed: false })
  }
  const tell = (text: string): void => send(itemOf('user', text))
  const withHint = (hint: string) => (): string => `${instructions}\n\n# Now\n${hint}`
  const wire: Wire = {
    hear({ buffer, byteOffset, byteLength }) {
      if (closed) return
      const audio = Buffer.from(buffer, byteOffset, byteLength).toString('base64')
      line.frame(socket.send({ type: 'input_audio_buffer.append', audio }))
      turns.frame()
      replies.frame()
      if (silentFrames !== null && ++silentFrames === commitAfter) commit()
    },
    interrupt(heard) {
      const replying = replies.activeId()
      replies.cancel()
      items.interrupt(heard, replying)
    },
    instruct(text) {
      const { tooLong } = promptSizeOf(provider.model, { instructions: text, tools: setup.tools })
      if (tooLong) log.warn(tooLong.message, { callId: setup.callId })
      instructions = text
      send({ type: 'session.update', session: { type: 'realtime', instructions } })
    },
    reply: (hint) => replies.ask({ instructions: hint === null ? null : withHint(hint), isOwed: false }),
    say: (text) => replies.ask({ instructions: withHint(`${sayExactly}\n${text}`), isOwed: true }),
    recall: earlier.insert,
    lineClosed: () => void (silentFrames = 0),
    tell,
    answerTool(id, name, output, wantsReply) {
      if (!tools.answer(id, output)) tell(`[Result of ${name}: ${JSON.stringify(output)}]`)
      if (wantsReply) replies.askAfterTools()
      else replies.pump()
    },
    close,
  }
  const take = (message: Message): void => {
    if (!closed) takers.get(textOf(message.type))?.(message)
  }
  return { wire, take, fail }
}
