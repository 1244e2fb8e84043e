/**
 * Owns an OpenAI-compatible server for tests and benches: transcription, chat and speech over real HTTP, as documented, with answers that are scripted.
 * It is strict: what a real one would refuse is refused, and noted in `violations`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { z } from 'zod'
import { bytesOf } from '../../model/frame.ts'
import { parseWav } from '../scenes/parse-wav.ts'
import { wavHeaderOf } from '../../media/recording/wav.ts'
import { listedLanguages } from './openai-realtime-events.ts'
import { createRandom } from './random.ts'
import { attachTranscriptionStream, type StreamBehaviour, type StreamedUtterance } from './transcription-stream.ts'

export type Stage = 'models' | 'transcription' | 'chat' | 'speech'

export type ScriptedReply = {
  readonly text?: string
  readonly calls?: readonly { readonly name: string; readonly arguments: string; readonly id?: string }[]
  /** Stops behind so many characters until `release`. */
  readonly heldAt?: number
  readonly finish?: 'stop' | 'tool_calls' | 'length'
}

/** `body` is the whole answer, with status 200 and, when it `staysOpen`, without an end. `answers: 'hang'` gives no answer; `stall` half of one; `cut` half of one and a reset; `half` that, as if it were all. The rest is a whole answer that is none. */
export type ScriptedFailure =
  | {
      readonly status: number
      readonly error?: object
      /** In place of `error`, as servers do that are made of FastAPI: a text, or what pydantic finds wrong. */
      readonly detail?: unknown
      readonly headers?: Readonly<Record<string, string>>
    }
  | { readonly contentType: string; readonly body: string | Uint8Array; readonly staysOpen?: boolean }
  | { readonly answers: 'hang' | 'stall' | 'cut' | 'half' | 'garbage' | 'huge' | 'web page' | 'redirect' }

export type ChatMessage = z.infer<typeof MessageShape>

/** Takes what the model sees: the talk, and the names of its tools. */
export type Model = (messages: readonly ChatMessage[], tools: readonly string[]) => string | ScriptedReply

export type Heard = { readonly text: string; readonly logprob?: number }

export type CascadeRequest = {
  readonly stage: Stage
  /** The JSON of chat and speech, the fields of a transcription. */
  readonly body: Readonly<Record<string, unknown>>
  /** Of a transcription: seconds of sound. */
  readonly seconds: number
  /** The client went away before the answer was complete. */
  aborted: boolean
}

export type CascadeServer = {
  /** Ends in `/v1`. */
  readonly url: string
  readonly requests: readonly CascadeRequest[]
  readonly violations: readonly string[]
  requestsOf(stage: Stage): CascadeRequest[]
  /** How often it was asked for a stream that it has not got. */
  streamRefusals(): number
  /** What was transcribed as it came. */
  readonly streamed: readonly StreamedUtterance[]
  /** Connections that are open now. */
  sockets(): number
  /** The next request of the stage that no `next` has told yet; waits for one. */
  next(stage: Stage): Promise<CascadeRequest>
  /** What utterances are understood as, one each; then as `transcript` has it. */
  hears(...texts: (string | Heard | ((wav: Int16Array) => string))[]): void
  /** Replies of the chat, one each; then what it `thinks`. */
  replies(...replies: (string | ScriptedReply)[]): void
  /** `Yes.` until this is called. */
  thinks(model: Model): void
  /** Failures of the stage, one each, before it answers as scripted. */
  fails(stage: Stage, ...failures: ScriptedFailure[]): void
  /** Lets a held reply, and every one after it, go on. */
  release(): void
  close(): Promise<void>
}

type Options = {
  readonly apiKey?: string
  readonly models?: Readonly<Record<'transcription' | 'chat' | 'speech', string>>
  readonly voices?: readonly string[]
  /** Of its speech. */
  readonly rateHz?: number
  readonly refusesWav?: boolean
  /** Tools are refused unless `reasoning_effort` is `none`: BerriAI/litellm#34569, GoogleChromeLabs/webmcp-tools#417, with these words. */
  readonly refusesThinkingWithTools?: boolean
  readonly hangsOnStreams?: boolean
  /** It transcribes speech as it comes, too. */
  readonly stream?: StreamBehaviour
  readonly transcript?: string
  /** Newer models refuse what older ones take. */
  readonly refusesMaxTokens?: boolean
  /** Tokens that its model thinks before it says a word; they count against the limit of a reply: covan-ai/covan#112. */
  readonly thoughts?: number
  readonly refusesTemperature?: boolean
  /** In words that name no field. */
  readonly refusesStreamOptions?: boolean
  readonly refusesVerbose?: boolean
  readonly refusesLanguage?: boolean
  /** As the API counts: what is longer is refused. */
  readonly contextLetters?: number
  /** Without it `/models` is not there. */
  readonly listsModels?: boolean
  /** Ms: benches know what is not ours. */
  readonly delays?: Partial<Record<'transcription' | 'chatFirst' | 'chatToken' | 'speechFirst', number>>
}

export const cascadeModels = { transcription: 'ear-1', chat: 'brain-1', speech: 'mouth-1' } as const
export const cascadeKey = 'sk-cascade-test'
/** How long it speaks. */
export const msPerLetter = 50

const ToolCallShape = z.strictObject({
  id: z.string().min(1),
  type: z.literal('function'),
  function: z.strictObject({ name: z.string().regex(/^[\w-]{1,64}$/), arguments: z.string() }),
})
const MessageShape = z.discriminatedUnion('role', [
  z.strictObject({ role: z.literal('system'), content: z.string() }),
  z.strictObject({ role: z.literal('user'), content: z.string().min(1) }),
  z.strictObject({
    role: z.literal('assistant'),
    content: z.string().nullable(),
    tool_calls: z.array(ToolCallShape).min(1).optional(),
  }),
  z.strictObject({ role: z.literal('tool'), tool_call_id: z.string(), content: z.string() }),
])
const ChatShape = z.strictObject({
  model: z.string(),
  messages: z.array(MessageShape).min(1),
  tools: z
    .array(
      z.strictObject({
        type: z.literal('function'),
        function: z.strictObject({
          name: z.string().regex(/^[\w-]{1,64}$/),
          description: z.string(),
          parameters: z.looseObject({ type: z.literal('object') }),
        }),
      }),
    )
    .min(1)
    .optional(),
  temperature: z.number().min(0).max(2).optional(),
  reasoning_effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']).optional(),
  max_tokens: z.number().int().positive().optional(),
  max_completion_tokens: z.number().int().positive().optional(),
  stream: z.literal(true),
  stream_options: z.strictObject({ include_usage: z.boolean() }).optional(),
})
const SpeechShape = z.strictObject({
  model: z.string(),
  input: z.string().min(1).max(4096),
  voice: z.string().optional(),
  response_format: z.enum(['pcm', 'wav']),
})
const TranscriptionShape = z.strictObject({
  model: z.string(),
  language: z.string().length(2).optional(),
  'languages[]': z.string().length(2).optional(),
  response_format: z.enum(['json', 'verbose_json']),
})

/** What a real server answers to a request that is wrong. */
class Refused extends Error {
  readonly status: number
  readonly body: object
  constructor(status: number, error: object) {
    super(`answered ${status}`)
    this.status = status
    this.body = { error }
  }
}

export async function openCascadeServer(options: Options = {}): Promise<CascadeServer> {
  const { apiKey = cascadeKey, models = cascadeModels, rateHz = 24_000, delays = {} } = options
  const requests: CascadeRequest[] = []
  const violations: string[] = []
  const streamed: StreamedUtterance[] = []
  let streamRefusals = 0
  const told = new Map<Stage, number>()
  const looking = new Set<() => void>()
  const heard: (string | Heard | ((wav: Int16Array) => string))[] = []
  const replies: (string | ScriptedReply)[] = []
  const failures = new Map<Stage, ScriptedFailure[]>()
  const timers = new Set<NodeJS.Timeout>()
  let think: Model = () => 'Yes.'
  const gate = Promise.withResolvers<void>()

  const pause = (ms: number): Promise<void> => {
    if (ms === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        timers.delete(timer)
        resolve()
      }, ms)
      timers.add(timer)
    })
  }
  const note = (request: CascadeRequest, response: ServerResponse): void => {
    response.once('close', () => (request.aborted = !response.writableFinished))
    requests.push(request)
    for (const look of looking) look()
  }
  const checked = <Shape extends z.ZodType>(shape: Shape, value: unknown): z.infer<Shape> => {
    const parsed = shape.safeParse(value)
    if (parsed.success) return parsed.data
    violations.push(z.prettifyError(parsed.error))
    throw new Refused(400, { message: 'invalid request', type: 'invalid_request_error', param: null, code: null })
  }
  const knowModel = (stage: keyof typeof models, model: string): void => {
    if (models[stage] === model) return
    throw new Refused(404, { message: `The model \`${model}\` does not exist`, code: 'model_not_found', param: null })
  }

  const transcription = async (incoming: IncomingMessage, whole: Buffer, response: ServerResponse): Promise<void> => {
    const { fields, file } = formOf(incoming.headers['content-type'] ?? '', whole)
    const { samples, rateHz: wavRate, channels } = parseWav(file)
    if (wavRate !== 16_000 || channels !== 1) violations.push(`a wav of ${channels} channels at ${wavRate} Hz`)
    note({ stage: 'transcription', body: fields, seconds: samples.length / wavRate, aborted: false }, response)
    if (fail('transcription', response)) return
    const { model, response_format: format, language, 'languages[]': listed } = checked(TranscriptionShape, fields)
    knowModel('transcription', model)
    // michaelwilhelmsen/humla#128: what the one has the other passes over, or refuses.
    const hasList = model === 'gpt-transcribe'
    if ((hasList ? language : listed) !== undefined) violations.push(`${model} was told the language of another model`)
    if (listed !== undefined && !listedLanguages.includes(listed))
      throw new Refused(400, { message: 'languages', param: 'languages', code: 'invalid_value' })
    if (options.refusesVerbose && format === 'verbose_json')
      throw new Refused(400, { message: 'response_format', param: 'response_format', code: 'unsupported_value' })
    if (options.refusesLanguage && fields['language'] !== undefined)
      throw new Refused(422, { message: 'language', param: 'language', code: null })
    await pause(delays.transcription ?? 0)
    const next = heard.shift() ?? options.transcript ?? ''
    const scripted = typeof next === 'function' ? next(samples) : next
    const { text, logprob = -0.2 } = typeof scripted === 'string' ? { text: scripted } : scripted
    const end = samples.length / wavRate
    const segments = [{ id: 0, start: 0, end, text, avg_logprob: logprob, no_speech_prob: 0.01 }]
    sendJson(response, 200, format === 'json' ? { text } : { task: 'transcribe', duration: end, text, segments })
  }
  const chat = async (given: unknown, response: ServerResponse): Promise<void> => {
    note({ stage: 'chat', body: given as Record<string, unknown>, seconds: 0, aborted: false }, response)
    if (fail('chat', response)) return
    const body = checked(ChatShape, given)
    knowModel('chat', body.model)
    violations.push(...orderFlaws(body.messages))
    if (options.refusesMaxTokens && body.max_tokens !== undefined)
      throw new Refused(400, { message: 'max_tokens', param: 'max_tokens', code: 'unsupported_parameter' })
    if (options.refusesTemperature && body.temperature !== undefined)
      throw new Refused(400, { message: 'temperature', param: 'temperature', code: 'unsupported_value' })
    if (options.refusesThinkingWithTools && body.tools !== undefined && body.reasoning_effort !== 'none')
      throw new Refused(400, {
        message: `Function tools with reasoning_effort are not supported for ${body.model} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`,
        type: 'invalid_request_error',
        param: 'reasoning_effort',
        code: null,
      })
    if (options.refusesStreamOptions && body.stream_options !== undefined)
      throw new Refused(400, {
        message: 'Extra inputs are not permitted',
        type: 'BadRequestError',
        param: null,
        code: 400,
      })
    if (JSON.stringify(body.messages).length > (options.contextLetters ?? Infinity))
      throw new Refused(400, {
        message: "This model's maximum context length is 8192 tokens.",
        type: 'BadRequestError',
        param: null,
        code: 400,
      })
    const limit = body.max_completion_tokens ?? body.max_tokens ?? Infinity
    const answered = () =>
      replies.shift() ??
      think(
        body.messages,
        (body.tools ?? []).map((tool) => tool.function.name),
      )
    const next = (options.thoughts ?? 0) >= limit ? ({ text: '', finish: 'length' } as const) : answered()
    const reply = typeof next === 'string' ? { text: next } : next
    await pause(delays.chatFirst ?? 0)
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    const random = createRandom(requests.length)
    for (const [index, part] of partsOf(reply, body.stream_options?.include_usage).entries()) {
      if (index > 0) await Promise.race([gate.promise, gone(response)])
      // Boundaries that mean nothing: within characters, lines and events.
      for (let at = 0; at < part.length && !response.destroyed;) {
        const size = 1 + random.below(40)
        response.write(part.subarray(at, at + size))
        at += size
        await pause(delays.chatToken ?? 0)
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    response.end()
  }
  const speech = async (given: unknown, response: ServerResponse): Promise<void> => {
    note({ stage: 'speech', body: given as Record<string, unknown>, seconds: 0, aborted: false }, response)
    if (fail('speech', response)) return
    const { model, input, voice, response_format: format } = checked(SpeechShape, given)
    knowModel('speech', model)
    if (voice !== undefined && options.voices && !options.voices.includes(voice))
      throw new Refused(400, { message: `no voice ${voice}`, param: 'voice', code: 'invalid_value' })
    if (options.refusesWav && format === 'wav')
      throw new Refused(400, { message: 'response_format', param: 'response_format', code: 'unsupported_value' })
    await pause(delays.speechFirst ?? 0)
    // Bare samples do not say at what rate they are: Speaches' Piper voices have 22,050 Hz.
    response.writeHead(200, { 'content-type': `audio/${format}` })
    const bare = soundOf(input, rateHz)
    const sound = format === 'wav' ? Buffer.concat([wavHeaderOf({ rateHz, channels: 1 }, bare.length), bare]) : bare
    const random = createRandom(input.length)
    for (let at = 0; at < sound.length && !response.destroyed;) {
      const size = 1 + random.below(20_000)
      response.write(sound.subarray(at, at + size))
      at += size
      await new Promise((resolve) => setImmediate(resolve))
    }
    response.end()
  }
  const fail = (stage: Stage, response: ServerResponse): boolean => {
    const failure = failures.get(stage)?.shift()
    if (failure) failAs(failure, stage, response)
    return failure !== undefined
  }
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const whole = Buffer.concat(chunks)
    if (incoming.headers.authorization !== `Bearer ${apiKey}`)
      throw new Refused(401, {
        message: `Incorrect API key provided: ${incoming.headers.authorization}`,
        code: 'invalid_api_key',
      })
    const { method, url = '' } = incoming
    if (method === 'POST' && url === '/v1/audio/transcriptions') return transcription(incoming, whole, response)
    if (method === 'POST' && url === '/v1/chat/completions') return chat(jsonOf(incoming, whole), response)
    if (method === 'POST' && url === '/v1/audio/speech') return speech(jsonOf(incoming, whole), response)
    if (url.startsWith('/v1/realtime')) streamRefusals++
    if (url.startsWith('/v1/realtime') && options.hangsOnStreams) return
    if (method !== 'GET' || !url.startsWith('/v1/models') || options.listsModels === false)
      throw new Refused(404, { message: 'Not Found', type: 'invalid_request_error' })
    note({ stage: 'models', body: {}, seconds: 0, aborted: false }, response)
    if (fail('models', response)) return
    const model = decodeURIComponent(url.slice('/v1/models/'.length))
    if (!Object.values(models).includes(model))
      throw new Refused(404, {
        message: `The model '${model}' does not exist`,
        code: 'model_not_found',
        param: 'model',
      })
    sendJson(response, 200, { id: model, object: 'model', owned_by: 'test' })
  }
  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((error: unknown) => {
      if (error instanceof Refused) return sendJson(response, error.status, error.body)
      violations.push(String(error))
      response.destroy()
    })
  })
  // Whoever leaves a connection open has to close it.
  server.keepAliveTimeout = 0
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  if (options.stream)
    attachTranscriptionStream(server, {
      ...options.stream,
      apiKey,
      model: models.transcription,
      nextText() {
        const next = heard[0] ?? options.transcript ?? ''
        if (typeof next === 'function') throw new Error('what is heard by its sound is heard whole')
        if (options.stream?.ends === undefined) heard.shift()
        return typeof next === 'string' ? next : next.text
      },
      onUtterance: (utterance) => void streamed.push(utterance),
    })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    violations,
    streamed,
    streamRefusals: () => streamRefusals,
    requestsOf: (stage) => requests.filter((request) => request.stage === stage),
    next: (stage) =>
      new Promise((resolve) => {
        const look = (): void => {
          const number = told.get(stage) ?? 0
          const request = requests.filter((candidate) => candidate.stage === stage)[number]
          if (!request || !looking.has(look)) return
          told.set(stage, number + 1)
          looking.delete(look)
          resolve(request)
        }
        looking.add(look)
        look()
      }),
    sockets: () => sockets.size,
    hears: (...texts) => void heard.push(...texts),
    replies: (...more) => void replies.push(...more),
    thinks(model) {
      think = model
    },
    fails: (stage, ...more) => void failures.set(stage, [...(failures.get(stage) ?? []), ...more]),
    release: () => gate.resolve(),
    async close() {
      gate.resolve()
      for (const timer of timers) clearTimeout(timer)
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Every call has its answer right behind it; nobody speaks twice in a row, and the user first. */
function orderFlaws(messages: readonly z.infer<typeof MessageShape>[]): string[] {
  const flaws: string[] = []
  const open = new Set<string>()
  for (const [index, message] of messages.entries()) {
    if (message.role === 'tool' && !open.delete(message.tool_call_id)) flaws.push(`message ${index}: no such call`)
    if (message.role !== 'tool' && open.size > 0) flaws.push(`message ${index}: a call has no answer`)
    if ((message.role === 'system') !== (index === 0)) flaws.push(`message ${index}: system`)
    if (index === 1 && message.role !== 'user') flaws.push('the user does not begin')
    if (index > 1 && message.role === messages[index - 1]?.role && message.role !== 'tool')
      flaws.push(`message ${index}: ${message.role} twice in a row`)
    if (message.role === 'assistant') for (const { id } of message.tool_calls ?? []) open.add(id)
  }
  if (open.size > 0) flaws.push('a call has no answer')
  if (messages.at(-1)?.role === 'assistant') flaws.push('the assistant has spoken last')
  return flaws
}

/** Server-sent events; what is held lies in a second part. */
function partsOf({ text = '', calls = [], heldAt, finish }: ScriptedReply, tellsUsage = false): Buffer[] {
  const chunkOf = (delta: object, reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: reason }] })}\r\n\r\n`
  const tokens = (words: string) => (words.match(/\s*\S+/gu) ?? []).map((content) => chunkOf({ content })).join('')
  const callChunks = calls.flatMap(({ name, arguments: written, id = `call_${name}` }, index) => [
    chunkOf({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
    ...(written.match(/.{1,5}/gsu) ?? []).map((piece) =>
      chunkOf({ tool_calls: [{ index, function: { arguments: piece } }] }),
    ),
  ])
  const begin = `: keep-alive\n\n${chunkOf({ role: 'assistant', content: '' })}`
  const usage = { prompt_tokens: 40, completion_tokens: 8, total_tokens: 48 }
  const told = { id: 'c1', object: 'chat.completion.chunk', choices: [], usage }
  const end =
    callChunks.join('') +
    chunkOf({}, finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')) +
    (tellsUsage ? `data: ${JSON.stringify(told)}\r\n\r\n` : '') +
    'data: [DONE]\r\n\r\n'
  if (heldAt === undefined) return [Buffer.from(begin + tokens(text) + end)]
  return [Buffer.from(begin + tokens(text.slice(0, heldAt))), Buffer.from(tokens(text.slice(heldAt)) + end)]
}

/** As loud as the text is long, so that a listener knows which text it is. */
function soundOf(text: string, rateHz: number): Uint8Array {
  const samples = new Int16Array(Math.round((text.length * msPerLetter * rateHz) / 1000))
  return bytesOf(samples.map((_, index) => (index % 20 < 10 ? 1 : -1) * (1000 + text.length)))
}

function failAs(failure: ScriptedFailure, stage: Stage, response: ServerResponse): void {
  if ('body' in failure) {
    response.writeHead(200, { 'content-type': failure.contentType }).write(failure.body)
    if (failure.staysOpen !== true) response.end()
    return
  }
  if ('status' in failure) {
    const body = 'detail' in failure ? { detail: failure.detail } : { error: failure.error ?? {} }
    return sendJson(response, failure.status, body, failure.headers)
  }
  const contentType = {
    models: 'application/json',
    transcription: 'application/json',
    chat: 'text/event-stream',
    speech: 'audio/pcm',
  }[stage]
  const half = {
    models: '{"id":',
    transcription: '{"text": "half of',
    chat: 'data: {"choices":[{"index":0,"delta":{"content":"Half of an answer. And then"}}]}\n\n',
    speech: soundOf('ten letters', 24_000).subarray(0, 9_999),
  }[stage]
  switch (failure.answers) {
    case 'hang':
      return
    case 'stall':
      response.writeHead(200, { 'content-type': contentType }).write(half)
      return
    case 'cut':
      response.writeHead(200, { 'content-type': contentType })
      response.write(half, () => setImmediate(() => response.destroy()))
      return
    case 'half':
      response.writeHead(200, { 'content-type': contentType }).end(half)
      return
    case 'garbage':
      response.writeHead(200, { 'content-type': contentType }).end('data: {"choices":[{"del\n\ndata: \u0000\n\n')
      return
    case 'huge':
      response.writeHead(200, { 'content-type': contentType }).end(`data: ${'x'.repeat(30 * 1024 * 1024)}`)
      return
    case 'web page':
      response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome to nginx!</html>')
      return
    case 'redirect':
      response.writeHead(307, { location: 'http://127.0.0.1:1/v1' }).end()
  }
}

const gone = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => (response.destroyed ? resolve() : response.once('close', resolve)))

function sendJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

function jsonOf(incoming: IncomingMessage, whole: Buffer): unknown {
  if (incoming.headers['content-type'] !== 'application/json') throw new Refused(415, { message: 'no JSON' })
  return JSON.parse(whole.toString('utf8'))
}

/** RFC 7578. */
function formOf(contentType: string, whole: Buffer): { fields: Record<string, string>; file: Buffer } {
  const boundary = /^multipart\/form-data; boundary=(\S+)$/.exec(contentType)?.[1]
  if (!boundary) throw new Refused(415, { message: 'no form' })
  const parts = whole.toString('latin1').split(`--${boundary}`)
  if (parts[0] !== '' || parts.at(-1) !== '--\r\n') throw new Refused(400, { message: 'no whole form' })
  const fields: Record<string, string> = {}
  let file = Buffer.alloc(0)
  for (const part of parts.slice(1, -1)) {
    const split = part.indexOf('\r\n\r\n')
    const head = part.slice(2, split)
    const body = part.slice(split + 4, -2)
    const name = /name="([^"]+)"/.exec(head)?.[1] ?? ''
    if (head.includes('filename="speech.wav"') && head.includes('Content-Type: audio/wav'))
      file = Buffer.from(body, 'latin1')
    else fields[name] = body
  }
  return { fields, file }
}
