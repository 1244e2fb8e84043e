/**
 * Owns the transcription of speech as it comes, for the fake of OpenAI-compatible servers, in three dialects: OpenAI's
 * (developers.openai.com/api/docs/guides/realtime-transcription), Speaches' (speaches-ai/speaches, src/speaches/realtime, the beta of the same), and vLLM's
 * (vllm-project/vllm, vllm/entrypoints/openai/realtime).
 */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import { WebSocketServer, type WebSocket } from 'ws'

export type StreamBehaviour = {
  readonly dialect: 'openai' | 'speaches' | 'vllm'
  /** `late`: the end of what was said is never told. `broken`: an error in its place. `lost`: the connection is cut. */
  readonly ends?: 'late' | 'broken' | 'lost'
}

export type StreamedUtterance = {
  /** Ms of sound. */
  readonly ms: number
}

type Deps = StreamBehaviour & {
  readonly apiKey: string
  readonly model: string
  nextText(): string
  onUtterance(utterance: StreamedUtterance): void
}

type Event = Readonly<Record<string, unknown>>

/** The first word is understood by then. */
const firstWordMs = 400
const transcription = 'conversation.item.input_audio_transcription'

export function attachTranscriptionStream(http: Server, deps: Deps): void {
  const sockets = new WebSocketServer({ noServer: true })
  http.on('upgrade', (request, socket, head) => {
    const status = statusOf(request, deps)
    if (status !== null) return socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
    sockets.handleUpgrade(request, socket, head, (client) => serve(client, request, deps))
  })
  http.on('close', () => sockets.close())
}

const parametersOf = ({ url }: IncomingMessage): URL => new URL(url ?? '/', 'http://localhost')

function statusOf(request: IncomingMessage, { dialect, apiKey, model }: Deps): string | null {
  const { pathname, searchParams } = parametersOf(request)
  if (pathname !== '/v1/realtime') return '404 Not Found'
  if (request.headers.authorization !== `Bearer ${apiKey}`) return '401 Unauthorized'
  // FastAPI closes a WebSocket whose parameters are missing before it is accepted.
  return dialect === 'speaches' && searchParams.get('model') !== model ? '403 Forbidden' : null
}

function serve(client: WebSocket, request: IncomingMessage, deps: Deps): void {
  const { dialect, ends, model } = deps
  const { searchParams } = parametersOf(request)
  const bytesPerMs = dialect === 'vllm' ? 32 : 48
  const send = (event: Event): void => client.send(JSON.stringify(event))
  const refuse = (message: string): void =>
    send(
      dialect === 'vllm'
        ? { type: 'error', error: message, code: 'processing_error' }
        : { type: 'error', error: { type: 'invalid_request_error', message } },
    )
  let isSetUp = false
  let isListening = dialect !== 'vllm'
  let bytes = 0
  let text: string | null = null
  let told = ''
  let itemId = ''

  const name = (): object => (dialect === 'vllm' ? {} : { item_id: itemId, content_index: 0 })
  const tell = (words: string): void => {
    told += words
    const type = dialect === 'vllm' ? 'transcription.delta' : `${transcription}.delta`
    send({ type, ...name(), delta: words })
  }
  const hear = (sound: string): void => {
    bytes += Buffer.from(sound, 'base64').length
    text ??= deps.nextText()
    if (itemId === '') itemId = `item_${randomBytes(8).toString('hex')}`
    // Speaches transcribes what is committed, and nothing before.
    if (dialect !== 'speaches' && told === '' && bytes / bytesPerMs >= firstWordMs) tell(/^\S*\s*/.exec(text)![0])
  }
  const finish = (): void => {
    if (bytes / bytesPerMs < 100) return refuse('buffer too small')
    deps.onUtterance({ ms: bytes / bytesPerMs })
    if (dialect !== 'vllm') send({ type: 'input_audio_buffer.committed', previous_item_id: null, item_id: itemId })
    if (ends === 'broken') refuse('it has broken down')
    if (ends === 'lost') client.terminate()
    if (ends === undefined) {
      const whole = text ?? ''
      tell(whole.slice(told.length))
      if (dialect === 'vllm') send({ type: 'transcription.done', text: whole, usage: null })
      else send({ type: `${transcription}.completed`, ...name(), transcript: whole })
    }
    bytes = 0
    text = null
    told = ''
    itemId = ''
  }
  const update = (event: Event): void => {
    const session = (event['session'] ?? {}) as Event
    const isConversation = searchParams.has('model')
    const isRight = {
      // A URL with a model makes a conversation, which does not take this update.
      openai: !isConversation && session['type'] === 'transcription' && JSON.stringify(session).includes('24000'),
      speaches: session['turn_detection'] === null && 'input_audio_transcription' in session,
      vllm: event['model'] === model,
    }[dialect]
    if (!isRight) return refuse('it cannot be set up so')
    isSetUp = true
    if (dialect !== 'vllm') send({ type: 'session.updated', session })
  }
  client.on('message', (raw: Buffer) => {
    const event = JSON.parse(raw.toString('utf8')) as Event
    if (event['type'] === 'session.update') return update(event)
    if (!isSetUp) return refuse('it is not set up')
    if (event['type'] === 'input_audio_buffer.commit') {
      if (dialect !== 'vllm') return finish()
      if (event['final'] === true) finish()
      isListening = event['final'] !== true
      return
    }
    if (event['type'] !== 'input_audio_buffer.append' || !isListening) return refuse('it does not know that')
    hear(String(event['audio']))
  })
  client.on('error', () => client.terminate())
  send(createdOf(dialect, searchParams.has('model')))
}

function createdOf(dialect: StreamBehaviour['dialect'], hasModel: boolean): Event {
  const type = 'session.created'
  if (dialect === 'vllm') return { type, id: 'sess-1', created: 1 }
  if (dialect === 'openai')
    return { type, session: { type: hasModel ? 'realtime' : 'transcription', audio: { input: {} } } }
  const turn_detection = { type: 'server_vad', threshold: 0.6 }
  return { type, session: { modalities: ['audio', 'text'], input_audio_transcription: { model: '' }, turn_detection } }
}
