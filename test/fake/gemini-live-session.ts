/** Owns one session of the fake of Gemini Live: what a connection may say when, whose turn it is, and what the model's words become on the wire. */
import { randomUUID } from 'node:crypto'
import type { FunctionResponse, LiveClientMessage, LiveClientSetup, LiveServerMessage } from '@google/genai'
import type { WebSocket } from 'ws'
import { createHearing, type Hearing } from './gemini-live-hearing.ts'
import type { GeminiOptions, ModelInput, ModelWords, SavedSession } from './gemini-live-options.ts'
import { flawOfClientMessage } from './gemini-live-shapes.ts'

/** What a server sends; the SDK's type has getters that are not of the wire. */
export type ServerWords = Partial<Omit<LiveServerMessage, 'text' | 'data'>>

export type GeminiFakeSession = {
  readonly received: LiveClientMessage[]
  readonly setup: () => LiveClientSetup | null
  /** How it was closed by the server, if it was. */
  readonly closedWith: () => { readonly code: number; readonly reason: string } | null
  send(message: ServerWords): void
  /** Anything at all, JSON or not. */
  raw(bytes: string | Buffer): void
  goAway(timeLeft: string): void
  close(code: number, reason: string): void
  /** Without a close frame. */
  die(): void
  isOpen(): boolean
  /** What the client sends stays with the client, beyond what the network holds. */
  stopReading(): void
  readOn(): void
}

/** About what a voice takes for a character. */
const msPerCharacter = 60
const chunkMs = 100
/** 24 kHz, 16 bits. */
const chunk = Buffer.alloc((24_000 * 2 * chunkMs) / 1000)
for (let at = 0; at < chunk.length; at += 2) chunk.writeInt16LE(Math.round(6000 * Math.sin((at / 2) * 0.08)), at)
const sound = chunk.toString('base64')

const invalid = 'Request contains an invalid argument.'
const notFound = 'Requested entity was not found.'

export function createGeminiSession(
  socket: WebSocket,
  options: GeminiOptions,
  saved: Map<string, SavedSession>,
): GeminiFakeSession {
  const received: LiveClientMessage[] = []
  let setup: LiveClientSetup | null = null
  let closedWith: { code: number; reason: string } | null = null
  const session: GeminiFakeSession = {
    received,
    setup: () => setup,
    closedWith: () => closedWith,
    send: (message) => session.raw(options.binary ? Buffer.from(JSON.stringify(message)) : JSON.stringify(message)),
    raw(bytes) {
      if (socket.readyState === socket.OPEN) socket.send(bytes)
    },
    goAway: (timeLeft) => session.send({ goAway: { timeLeft } }),
    close(code, reason) {
      closedWith = { code, reason }
      socket.close(code, reason)
    },
    die: () => socket.terminate(),
    isOpen: () => socket.readyState === socket.OPEN,
    stopReading: () => socket.pause(),
    readOn: () => socket.resume(),
  }
  const talk = createTalk(session, options, saved)

  socket.on('close', () => talk.end())
  socket.on('error', () => socket.terminate())
  socket.on('message', (bytes: Buffer) => {
    if (closedWith) return
    const message = JSON.parse(bytes.toString('utf8')) as LiveClientMessage
    const flaw = flawOfClientMessage(message)
    if (flaw !== null) return session.close(1007, flaw)
    received.push(message)
    if (setup === null) {
      setup = message.setup ?? null
      return setup === null ? session.close(1007, 'setup must be the first message') : talk.begin(setup)
    }
    if (message.setup) return session.close(1007, 'setup must be sent once')
    talk.take(message)
  })
  return session
}

function createTalk(session: GeminiFakeSession, options: GeminiOptions, saved: Map<string, SavedSession>) {
  const { send } = session
  const timers = new Set<NodeJS.Timeout>()
  const tools = new Map<string, string>()
  const canceled = new Set<string>()
  let memory: SavedSession = { id: randomUUID(), model: '', context: [], open: { sockets: 0 } }
  let setup: LiveClientSetup = {}
  let hearing: Hearing | null = null
  let historyDue = false
  let utterances = 0
  let inputs = 0
  let texts = 0
  let calls = 0
  /** Told apart from those that were broken off. */
  let generation = 0
  let generating = false
  let counted = false

  const after = (ms: number, action: () => void): void => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      action()
    }, ms)
    timers.add(timer)
  }
  const offerHandle = (): void => {
    if (!setup.sessionResumption) return
    const newHandle = randomUUID()
    saved.set(newHandle, { ...memory, context: [...memory.context] })
    send({ sessionResumptionUpdate: { newHandle, resumable: true } })
  }
  const breakOff = (): void => {
    generation++
    if (generating) {
      generating = false
      send({ serverContent: { interrupted: true } })
      send({ serverContent: { turnComplete: true } })
    }
    if (tools.size === 0) return
    for (const id of tools.keys()) canceled.add(id)
    send({ toolCallCancellation: { ids: [...tools.keys()] } })
    tools.clear()
  }
  /** @google/genai 3.1, LiveServerContent and TurnCompleteReason. */
  const endTurn = (reason?: string): void => {
    generating = false
    send({ serverContent: { turnComplete: true, ...(reason && { turnCompleteReason: reason as never }) } })
    offerHandle()
  }
  /** ai.google.dev/gemini-api/docs/models/gemini-3.8-live: asynchronous calls are its usual ones, and synchronous ones must be declared; older models have none. */
  const isBlocking = (name: string): boolean => {
    if (!memory.model.includes('3.8')) return true
    const declared = setup.tools?.flatMap((tool) => ('functionDeclarations' in tool ? tool.functionDeclarations : []))
    return declared?.some((one) => one?.name === name && one.behavior === 'BLOCKING') ?? false
  }
  /** A call of a tool stops the turn until it is answered, if the tool is one that blocks. */
  const call = (words: readonly ModelWords[], mine: number): void => {
    const made = words.flatMap((word) => ('call' in word ? [word] : []))
    const functionCalls = made.map((word) => {
      const id = `function-call-${++calls}`
      tools.set(id, word.call)
      return { id, name: word.call, args: word.args }
    })
    send({ toolCall: { functionCalls: functionCalls as never } })
    const rest = words.filter((word) => !('call' in word))
    if (!made.some((word) => isBlocking(word.call))) say(rest, mine)
  }
  const speak = (text: string, mine: number, done: () => void): void => {
    memory.context.push({ role: 'model', text })
    const chunks = Math.max(1, Math.ceil((text.length * msPerCharacter) / chunkMs))
    const pieces = text.match(/\S+\s*/g) ?? [text]
    const order = options.textOrder ?? 'mixed'
    const tell = (from: number, to: number): void => {
      if (!setup.outputAudioTranscription) return
      for (const piece of pieces.slice(from, to)) send({ serverContent: { outputTranscription: { text: piece } } })
    }
    const next = (at: number): void => {
      if (mine !== generation) return
      if (at === 0 && order === 'before') tell(0, pieces.length)
      if (at === chunks) {
        if (order === 'after') tell(0, pieces.length)
        return done()
      }
      send({
        serverContent: { modelTurn: { parts: [{ inlineData: { data: sound, mimeType: 'audio/pcm;rate=24000' } }] } },
      })
      const share = (chunk: number): number => Math.floor((pieces.length * chunk) / chunks)
      if (order === 'mixed') tell(share(at), share(at + 1))
      after(options.pace ?? 0, () => next(at + 1))
    }
    next(0)
  }
  const say = (words: readonly ModelWords[], mine: number): void => {
    const [first] = words
    if (mine !== generation) return
    if (first && 'text' in first) return speak(first.text, mine, () => say(words.slice(1), mine))
    if (first && 'call' in first) return call(words, mine)
    if (first) return endTurn(first.reason)
    send({ serverContent: { generationComplete: true } })
    after(options.turnCompleteAfter ?? 0, () => {
      if (mine === generation) endTurn()
    })
  }
  const generate = (kind: ModelInput['kind'], text: string, responses: readonly FunctionResponse[] = []): void => {
    const mine = ++generation
    const exactly = /word for word[^\n]*\]\n([\s\S]+)$/.exec(text)?.[1]
    const input: ModelInput = { kind, count: inputs++, text, responses, context: [...memory.context], setup }
    const words = exactly === undefined ? options.model(input) : [{ text: exactly }]
    generating = true
    if (kind !== 'tool') memory.context.push({ role: 'user', text })
    if (setup.sessionResumption) send({ sessionResumptionUpdate: { resumable: false } })
    after(options.firstAudioAfter ?? 0, () => say(words, mine))
  }
  const started = (at: number): void =>
    after(options.speechStartAfter ?? 0, () => {
      if (options.tellsActivity)
        send({ voiceActivity: { voiceActivityType: 'ACTIVITY_START' as never, audioOffset: `${at / 1000}s` } })
      if (setup.realtimeInputConfig?.activityHandling !== 'NO_INTERRUPTION') breakOff()
    })
  /** Never before it has started, however fast the sound comes. */
  const stopped = (at: number): void =>
    after(options.speechStartAfter ?? 0, () => {
      const text = options.transcript?.(utterances++) ?? ''
      if (options.tellsActivity)
        send({ voiceActivity: { voiceActivityType: 'ACTIVITY_END' as never, audioOffset: `${at / 1000}s` } })
      after(options.transcriptAfter ?? 0, () => transcribe(text))
      generate('voice', text)
    })
  const transcribe = (text: string): void => {
    if (!setup.inputAudioTranscription || text === '') return
    const pieces = text.match(/\S+\s*/g) ?? [text]
    const last = options.tellsLastPiece === false ? -1 : pieces.length - 1
    pieces.forEach((piece, index) =>
      send({ serverContent: { inputTranscription: { text: piece, ...(index === last && { finished: true }) } } }),
    )
  }
  const answer = (responses: readonly FunctionResponse[]): void => {
    const mine = responses.filter(({ id }) => !canceled.has(id ?? ''))
    if (mine.some(({ id }) => !tools.has(id ?? ''))) return session.close(1007, invalid)
    const names = mine.map(({ id }) => tools.get(id ?? '') ?? '')
    for (const { id } of mine) tools.delete(id ?? '')
    if (mine.length === 0 || [...tools.values()].some(isBlocking)) return
    // @google/genai 3.1, FunctionResponse.scheduling: "Only applicable to NON_BLOCKING function calls, is ignored otherwise."
    if (!mine.every(({ scheduling }, index) => scheduling === 'SILENT' && !isBlocking(names[index]!)))
      generate('tool', '', mine)
  }
  const complete = (): void => {
    const detection = setup.realtimeInputConfig?.automaticActivityDetection ?? {}
    hearing = createHearing(detection, { started, stopped })
    historyDue = setup.historyConfig?.initialHistoryInClientContent === true
    send({ setupComplete: { sessionId: memory.id } })
    offerHandle()
  }

  return {
    begin(given: LiveClientSetup): void {
      setup = given
      const refusal = refusalOf(given, options, saved)
      if (refusal === 'silence') return
      if (refusal) return session.close(refusal.code, refusal.reason)
      const handle = given.sessionResumption?.handle
      const resumed = handle === undefined ? undefined : saved.get(handle)
      memory = resumed ? { ...resumed, context: [...resumed.context] } : { ...memory, model: given.model ?? '' }
      memory.open.sockets++
      counted = true
      after(options.setupAfter ?? 0, complete)
    },
    take({ clientContent, realtimeInput, toolResponse, contextUpdate }: LiveClientMessage): void {
      if (hearing === null) return session.close(1007, 'setup is not complete')
      if (clientContent) {
        if (!historyDue) return session.close(1007, invalid)
        for (const { role, parts } of clientContent.turns ?? [])
          memory.context.push({ role: role ?? '', text: parts?.[0]?.text ?? '' })
        historyDue = clientContent.turnComplete !== true
      }
      if (historyDue) return session.close(1007, invalid)
      if (realtimeInput?.audio) {
        if (realtimeInput.audio.mimeType !== 'audio/pcm;rate=16000') return session.close(1007, invalid)
        hearing.hear(Buffer.from(realtimeInput.audio.data ?? '', 'base64'))
      }
      if (realtimeInput?.text !== undefined && options.passesOver?.(texts++) !== true) {
        breakOff()
        generate('text', realtimeInput.text)
      }
      if (toolResponse) answer(toolResponse.functionResponses ?? [])
      if (contextUpdate && !options.takesContextUpdates) session.close(1007, invalid)
    },
    end(): void {
      generation++
      if (counted) memory.open.sockets--
      for (const timer of timers) clearTimeout(timer)
      timers.clear()
    },
  }
}

type Refusal = { readonly code: number; readonly reason: string } | 'silence' | null

function refusalOf(setup: LiveClientSetup, options: GeminiOptions, saved: Map<string, SavedSession>): Refusal {
  if (options.refusal) return options.refusal
  const model = setup.model ?? ''
  const { models = ['models/gemini-3.8-live'], voices = ['Puck', 'Kore'] } = options
  if (!models.includes(model)) {
    const reason = `${model} is not found for API version v1beta, or is not supported for bidiGenerateContent.`
    return { code: 1008, reason }
  }
  // AidenAI-IO/aiden-firmware#708 and NousResearch/hermes-agent#114116: "no thinking level" closes it.
  if (model.endsWith('-extended-thinking') && !setup.generationConfig?.thinkingConfig)
    return { code: 1007, reason: 'No thinking level specified.' }
  // What production clients know: `parametersJsonSchema` is taken by gemini-3.1 and newer only.
  const declarations = setup.tools?.flatMap((tool) => ('functionDeclarations' in tool ? tool.functionDeclarations : []))
  if (/gemini-2/.test(model) && declarations?.some((one) => one?.parametersJsonSchema !== undefined))
    return { code: 1007, reason: invalid }
  const language = setup.generationConfig?.speechConfig?.languageCode
  if (language !== undefined && options.refusedLanguages?.includes(language))
    return { code: 1007, reason: `Unsupported language code '${language}' for model ${model}` }
  const voice = setup.generationConfig?.speechConfig?.voiceConfig?.prebuiltVoiceConfig?.voiceName
  if (voice !== undefined && !voices.includes(voice))
    return { code: 1007, reason: `Requested voice api_name '${voice}' is not available for model ${model}.` }
  const handle = setup.sessionResumption?.handle
  if (handle === undefined) return null
  if (options.handleRefusal) return options.handleRefusal
  const resumed = saved.get(handle)
  if (resumed?.model !== model) return { code: 1008, reason: notFound }
  return resumed.open.sockets > 0 ? { code: 1011, reason: 'Internal error occurred.' } : null
}
