/** Owns one session of the fake OpenAI Realtime: it listens by energy, takes turns, speaks tones, and refuses what the real one refuses. */
import { randomBytes } from 'node:crypto'
import type {
  ConversationItem,
  RealtimeAudioFormats,
  RealtimeAudioInputTurnDetection,
  RealtimeClientEvent,
  RealtimeServerEvent,
  RealtimeSessionCreateRequest,
} from 'openai/resources/realtime/realtime'
import type { WebSocket } from 'ws'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { readClientEvent } from './openai-realtime-events.ts'
import { realtimeModel, type RealtimeOptions, type Said } from './openai-realtime-options.ts'

export type RealtimeFakeSession = {
  readonly received: RealtimeClientEvent[]
  readonly errors: string[]
  /** As it comes: garbage, too. */
  sendRaw(text: string): void
  error(type: string, code: string): void
  /** The next `response.create` is refused so, and it is not said which one. */
  refuseNext(type: string, code: string): void
  /** Its model answers unasked, as after speech; not while a response is under way. */
  answer(): void
  /** The documented end of a session that is too old. */
  expire(): void
  /** No close frame. */
  die(): void
}

type Unnamed<Event> = Event extends { event_id: string } ? Omit<Event, 'event_id'> : Event
type Outgoing = Unnamed<RealtimeServerEvent>
type Asking = { readonly instructions: string | null; readonly metadata: Readonly<Record<string, string>> | null }
type Response = {
  readonly id: string
  readonly metadata: { readonly metadata?: Asking['metadata'] }
  over: boolean
  readonly output: ConversationItem[]
}
type Status = 'completed' | 'cancelled' | 'incomplete' | 'failed'
type Item = { readonly item: ConversationItem; readonly id: string; soundMs: number }
type Vad = RealtimeAudioInputTurnDetection.ServerVad

const idOf = (kind: string): string => `${kind}_${randomBytes(10).toString('hex')}`
const loud = 600
const onsetMs = 60
const msPerCharacter = 50
const pieceMs = 100
const afterSay = /word for word.*The text:\n([^]*)$/

export function createRealtimeSession(
  socket: WebSocket,
  options: RealtimeOptions,
  inOnePacket: (write: () => void) => void,
): RealtimeFakeSession {
  const received: RealtimeClientEvent[] = []
  const errors: string[] = []
  const items: Item[] = []
  let session: RealtimeSessionCreateRequest = { type: 'realtime', model: realtimeModel, instructions: '' }
  let active: Response | null = null
  let replies = 0
  let utterances = 0
  let isSetUp = false
  let refusing: (() => void) | null = null
  let closed = false
  const timers = new Set<NodeJS.Timeout>()

  const sendRaw = (text: string): void => socket.send(text)
  const send = (event: Outgoing): void => sendRaw(JSON.stringify({ event_id: idOf('event'), ...event }))
  const later = (ms: number, action: () => void): void => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      if (!closed) action()
    }, ms)
    timers.add(timer)
  }
  const error = (
    type: string,
    code: string,
    eventId: string | null = null,
    param: string | null = null,
    message = `It says ${code}.`,
  ): void => {
    errors.push(code)
    send({ type: 'error', error: { type, code, message, param, event_id: eventId } })
  }
  const ownIdOf = (kind: string, index = 0): string => (options.reusesIds ? `${kind}_${index}` : idOf(kind))
  const refuse = (code: string, event: { event_id?: string }, param?: string): void =>
    error('invalid_request_error', code, event.event_id ?? null, param)
  const add = (item: ConversationItem, at = items.length): Item => {
    const previous_item_id = items[at - 1]?.id ?? null
    const id = item.id ?? idOf('item')
    const named = { ...item, id } as ConversationItem
    const entry = { id, item: named, soundMs: 0 }
    items.splice(at, 0, entry)
    send({ type: 'conversation.item.added', previous_item_id, item: named })
    send({ type: 'conversation.item.done', previous_item_id, item: named })
    return entry
  }
  /** Where an item goes that is to stand behind that one; null: there is no such item. */
  const placeBehind = (previous: string | null | undefined): number | null => {
    if (previous === null || previous === undefined) return items.length
    if (previous === 'root') return 0
    const at = items.findIndex(({ id }) => id === previous)
    return at < 0 ? null : at + 1
  }
  const pacing = (after: number): Promise<void> => new Promise((resolve) => later(after, resolve))

  // Responses
  const finish = (response: Response, status: Status, details?: object): void => {
    if (response.over) return
    response.over = true
    active = null
    const { id, output, metadata } = response
    const status_details = details && { status_details: { type: status, ...details } }
    const told = { id, object: 'realtime.response', status, output, ...metadata, ...status_details } as const
    send({ type: 'response.done', response: told })
  }
  const speak = async (response: Response, output_index: number, text: string): Promise<void> => {
    const entry: Item = {
      id: ownIdOf('item', output_index),
      item: { id: '', type: 'message', role: 'assistant', content: [{ type: 'output_audio', transcript: text }] },
      soundMs: 0,
    }
    const item = { ...entry.item, id: entry.id } as ConversationItem
    const at = { response_id: response.id, item_id: entry.id, output_index, content_index: 0 }
    items.push(entry)
    send({ type: 'response.output_item.added', response_id: response.id, output_index, item })
    send({ type: 'response.content_part.added', ...at, part: { type: 'audio', transcript: '' } })
    await pacing(options.firstAudioAfter ?? 0)
    const pieces = Math.ceil((text.length * msPerCharacter) / pieceMs)
    for (let piece = 0; piece < pieces && !response.over; piece++) {
      const part = text.slice(piece * 2, piece * 2 + 2)
      send({ type: 'response.output_audio_transcript.delta', ...at, delta: part })
      send({ type: 'response.output_audio.delta', ...at, delta: tone(session.audio?.output?.format, piece) })
      entry.soundMs += pieceMs
      await pacing(options.pace ?? 0)
    }
    if (response.over) return
    send({ type: 'response.output_audio.done', ...at })
    send({ type: 'response.output_audio_transcript.done', ...at, transcript: text })
    send({ type: 'response.content_part.done', ...at, part: { type: 'audio', transcript: text } })
    send({ type: 'response.output_item.done', response_id: response.id, output_index, item })
    response.output.push(item)
  }
  /**
   * openai 7.55, ResponseFunctionCallArgumentsDoneEvent and ResponseOutputItemDoneEvent: "Also emitted when a Response is interrupted, incomplete, or
   * cancelled."
   */
  const call = (response: Response, output_index: number, said: Extract<Said, { call: string }>): void => {
    const item = {
      id: ownIdOf('item', output_index),
      type: 'function_call',
      call_id: ownIdOf('call', output_index),
      name: said.call,
      arguments: said.arguments,
      status: said.broken ? 'incomplete' : 'completed',
    } as const
    const { id: item_id, call_id, name } = item
    items.push({ id: item_id, item, soundMs: 0 })
    const response_id = response.id
    const at = { response_id, item_id, output_index }
    const isToldWhole = !options.tellsCallsByArguments
    if (isToldWhole)
      send({ type: 'response.output_item.added', response_id, output_index, item: { ...item, arguments: '' } })
    send({ type: 'response.function_call_arguments.done', ...at, call_id, name, arguments: item.arguments })
    if (isToldWhole) send({ type: 'response.output_item.done', response_id, output_index, item })
    if (isToldWhole) response.output.push(item)
    if (said.broken)
      finish(response, said.broken, { reason: said.broken === 'cancelled' ? 'turn_detected' : 'max_output_tokens' })
  }
  const respond = async ({ instructions, metadata }: Asking): Promise<void> => {
    const told = options.hasNoMetadata ? {} : { metadata }
    const response: Response = { id: ownIdOf('resp'), metadata: told, over: false, output: [] }
    active = response
    send({
      type: 'response.created',
      response: { id: response.id, object: 'realtime.response', status: 'in_progress', output: [], ...told },
    })
    const exactly = afterSay.exec(instructions ?? '')?.[1]
    const asked = { count: replies++, instructions, last: items.at(-1)?.item ?? null }
    const parts: readonly Said[] = exactly === undefined ? options.model(asked) : [{ text: exactly }]
    for (const [index, said] of parts.entries()) {
      if (response.over) return
      if ('fails' in said)
        return finish(response, 'failed', { error: { type: said.type ?? 'server_error', code: said.fails } })
      // openai 7.55, RealtimeResponseStatus: "the server-side safety filter activated and cut off the response".
      if ('filtered' in said) return finish(response, 'incomplete', { reason: 'content_filter' })
      if ('text' in said) await speak(response, index, said.text)
      else call(response, index, said)
    }
    finish(response, 'completed')
  }

  const answer = (): void => {
    if (active === null) void respond({ instructions: null, metadata: null })
  }

  // What the caller says
  const transcribe = (item_id: string, count: number): void => {
    if (!session.audio?.input?.transcription) return
    const said = options.transcript?.(count) ?? { text: 'Yes, please.' }
    const { text, logprob, after = options.transcriptAfter ?? 0, outcome = 'completed' } = said
    const content_index = 0
    if (outcome === 'never') return
    later(after, () => {
      const type = `conversation.item.input_audio_transcription.${outcome}` as const
      if (outcome === 'failed' || type.endsWith('failed'))
        return send({
          type: 'conversation.item.input_audio_transcription.failed',
          item_id,
          content_index,
          error: { type: 'transcription_error', code: 'audio_unintelligible', message: 'It was not understood.' },
        })
      const delta = { type: 'conversation.item.input_audio_transcription.delta', item_id, content_index } as const
      for (const word of text.split(/(?<= )/)) send({ ...delta, delta: word })
      const wanted = session.include?.includes('item.input_audio_transcription.logprobs') && logprob !== undefined
      send({
        type: 'conversation.item.input_audio_transcription.completed',
        item_id,
        content_index,
        transcript: text,
        usage: { type: 'duration', seconds: 1 },
        ...(wanted && { logprobs: [{ token: text, bytes: [], logprob }] }),
      })
    })
  }
  const speechOf = (type: string, item_id: string, times: Readonly<Record<string, number>>): string =>
    JSON.stringify({ event_id: idOf('event'), type, item_id, ...(!options.hasNoTimes && times) })
  /** What a model makes of the meaning is not to be had here: by meaning the turn ends as it does by sound. */
  const vad = (): Vad | null => {
    const detection = session.audio?.input?.turn_detection
    if (detection?.type !== 'semantic_vad') return detection ?? null
    const { create_response = true, interrupt_response = true } = detection
    const { patience = 500 } = options
    const silence_duration_ms = patience
    return { type: 'server_vad', prefix_padding_ms: 0, silence_duration_ms, create_response, interrupt_response }
  }
  const ear = createEar({
    vad,
    started(audio_start_ms, item_id) {
      later(options.speechStartAfter ?? 0, () => {
        sendRaw(speechOf('input_audio_buffer.speech_started', item_id, { audio_start_ms }))
        if (active && vad()?.interrupt_response !== false) finish(active, 'cancelled', { reason: 'turn_detected' })
      })
    },
    stopped(audio_end_ms, item_id) {
      later(options.speechStartAfter ?? 0, () => {
        sendRaw(speechOf('input_audio_buffer.speech_stopped', item_id, { audio_end_ms }))
        const previous_item_id = items.at(-1)?.id ?? null
        send({ type: 'input_audio_buffer.committed', previous_item_id, item_id })
        add({ id: item_id, type: 'message', role: 'user', content: [{ type: 'input_audio' }] })
        transcribe(item_id, utterances++)
        if (vad()?.create_response !== false) answer()
      })
    },
  })

  // Client events
  const update = (given: RealtimeSessionCreateRequest): void => {
    const input = { ...session.audio?.input, ...given.audio?.input }
    const output = { ...session.audio?.output, ...given.audio?.output }
    session = { ...session, ...given, audio: { input, output } }
    const events = isSetUp ? [] : (options.withSetup ?? [])
    isSetUp = true
    later(options.setupAfter ?? 0, () =>
      inOnePacket(() => {
        send({ type: 'session.updated', session })
        for (const event of events) sendRaw(JSON.stringify(event))
      }),
    )
  }
  const changeItem = (event: Extract<RealtimeClientEvent, { item_id: string }>): void => {
    const verb = event.type.split('.').at(-1)!
    const at = items.findIndex(({ id }) => id === event.item_id)
    const entry = items[at]
    if (!entry) return refuse(`item_${verb}_invalid_item_id`, event, 'item_id')
    const { item_id } = event
    if (event.type === 'conversation.item.delete') {
      items.splice(at, 1)
      return send({ type: 'conversation.item.deleted', item_id })
    }
    if (event.type !== 'conversation.item.truncate') return
    const { audio_end_ms, content_index } = event
    const isOwn = entry.item.type === 'message' && entry.item.role === 'assistant'
    if (!isOwn || audio_end_ms > entry.soundMs) return refuse('invalid_value', event, 'audio_end_ms')
    entry.soundMs = audio_end_ms
    send({ type: 'conversation.item.truncated', item_id, audio_end_ms, content_index })
  }
  const take = (event: RealtimeClientEvent): void => {
    received.push(event)
    switch (event.type) {
      case 'session.update': {
        const given = event.session as RealtimeSessionCreateRequest
        if (options.refusesReasoning && given.reasoning)
          return refuse('unsupported_parameter', event, 'session.reasoning.effort')
        return update(given)
      }
      case 'input_audio_buffer.append':
        return ear.hear(samplesOf(session.audio?.input?.format, Buffer.from(event.audio, 'base64')))
      case 'conversation.item.create': {
        const { item } = event
        const fits = (call: ConversationItem): boolean =>
          call.type === 'function_call' && item.type === 'function_call_output' && call.call_id === item.call_id
        if (item.type === 'function_call_output' && !items.some((entry) => fits(entry.item)))
          return refuse('invalid_tool_call_id', event, 'item.call_id')
        const place = placeBehind(event.previous_item_id)
        return place === null ? refuse('item_not_found', event, 'previous_item_id') : void add(item, place)
      }
      case 'conversation.item.delete':
      case 'conversation.item.truncate':
        return changeItem(event)
      case 'response.cancel':
        if (active === null) return refuse('response_cancel_not_active', event)
        return finish(active, 'cancelled', { reason: 'client_cancelled' })
      case 'response.create':
        if (active !== null) return refuse('conversation_already_has_active_response', event)
        if (refusing !== null) {
          const answered = refusing
          refusing = null
          return answered()
        }
        return void respond({
          instructions: event.response?.instructions ?? null,
          metadata: event.response?.metadata ?? null,
        })
      case 'input_audio_buffer.commit': {
        if (!ear.commit()) return refuse('input_audio_buffer_commit_empty', event)
        const previous_item_id = items.at(-1)?.id ?? null
        const item_id = idOf('item')
        send({ type: 'input_audio_buffer.committed', previous_item_id, item_id })
        add({ id: item_id, type: 'message', role: 'user', content: [{ type: 'input_audio' }] })
        return transcribe(item_id, utterances++)
      }
      case 'conversation.item.retrieve':
      case 'input_audio_buffer.clear':
      case 'output_audio_buffer.clear':
        return refuse('unsupported_by_this_fake', event, 'type')
    }
  }

  socket.on('message', (bytes: Buffer) => {
    const { event, error: wrong } = readClientEvent(bytes.toString('utf8'))
    if (event) return take(event)
    errors.push(wrong.code ?? '')
    send({ type: 'error', error: wrong })
  })
  socket.on('error', () => socket.terminate())
  socket.on('close', () => {
    closed = true
    timers.forEach(clearTimeout)
  })
  const { expiresAt, refusal } = options
  const opened = {
    ...session,
    object: 'realtime.session',
    id: idOf('sess'),
    ...(expiresAt && { expires_at: expiresAt }),
  }
  send({ type: 'session.created', session: opened })
  if (refusal) error(refusal.type, refusal.code, null, null, refusal.message)
  return {
    received,
    errors,
    sendRaw,
    error,
    refuseNext(type, code) {
      refusing = () => error(type, code)
    },
    answer,
    expire() {
      error('invalid_request_error', 'session_expired')
      socket.close(1001)
    },
    die: () => socket.terminate(),
  }
}

type EarDeps = {
  vad(): Vad | null
  started(audioStartMs: number, itemId: string): void
  stopped(audioEndMs: number, itemId: string): void
}

/** Server VAD by energy. */
function createEar({ vad, started, stopped }: EarDeps) {
  let now = 0
  let loudFrom: number | null = null
  let lastLoud = 0
  let speaking: string | null = null
  return {
    /** False: nobody speaks. */
    commit(): boolean {
      const spoke = speaking !== null
      speaking = null
      loudFrom = null
      return spoke
    },
    hear({ samples, rate }: { samples: Int16Array; rate: number }): void {
      const begin = now
      now += (samples.length * 1000) / rate
      const detection = vad()
      if (detection === null) return
      const energy = Math.sqrt(samples.reduce((sum, value) => sum + value * value, 0) / Math.max(1, samples.length))
      if (energy > loud) {
        loudFrom ??= begin
        lastLoud = now
      } else if (speaking === null) loudFrom = null
      if (speaking === null && loudFrom !== null && now - loudFrom >= onsetMs) {
        speaking = idOf('item')
        started(Math.max(0, Math.round(loudFrom - (detection.prefix_padding_ms ?? 300))), speaking)
      }
      if (speaking !== null && now - lastLoud >= (detection.silence_duration_ms ?? 500)) {
        stopped(Math.round(now), speaking)
        speaking = null
        loudFrom = null
      }
    },
  }
}

type Format = RealtimeAudioFormats | undefined
const lawOf = (format: Format) =>
  format?.type === 'audio/pcmu' ? lawOfEncoding('pcmu') : format?.type === 'audio/pcma' ? lawOfEncoding('pcma') : null

function samplesOf(format: Format, bytes: Buffer): { samples: Int16Array; rate: number } {
  const law = lawOf(format)
  const samples = new Int16Array(law ? bytes.length : bytes.length >> 1)
  if (law) law.decode(bytes, samples)
  else samples.forEach((_, index) => (samples[index] = bytes.readInt16LE(index * 2)))
  return { samples, rate: law ? 8000 : 24000 }
}

/** 100 ms, in base64. */
function tone(format: Format, piece: number): string {
  const law = lawOf(format)
  const rate = law ? 8000 : 24000
  const samples = Int16Array.from({ length: (rate * pieceMs) / 1000 }, (_, index) =>
    Math.round(6000 * Math.sin((2 * Math.PI * (300 + piece) * index) / rate)),
  )
  if (!law) return Buffer.from(samples.buffer).toString('base64')
  const bytes = new Uint8Array(samples.length)
  law.encode(samples, bytes)
  return Buffer.from(bytes).toString('base64')
}
