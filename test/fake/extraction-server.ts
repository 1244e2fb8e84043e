/**
 * Owns an OpenAI-compatible server for tests of extraction: chat completions with structured outputs over real HTTP, with answers that are scripted. It is
 * strict: what a real one would refuse is refused, and noted in `violations`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

type Fields = Readonly<Record<string, unknown>>

export type ExtractionRequest = {
  readonly headers: IncomingMessage['headers']
  readonly body: Fields
  readonly instructions: string
  readonly transcript: readonly { readonly turn: number; readonly speaker: string; readonly text: string }[]
}

/** `report`: the content of the message, as JSON; `content`: as it stands. `hang` never answers, `stall` half of an answer, `huge` one without an end. */
export type ScriptedAnswer =
  | { readonly report: unknown; readonly finish?: string }
  | { readonly content: string | null; readonly refusal?: string }
  | { readonly status: number; readonly error?: Fields; readonly headers?: Readonly<Record<string, string>> }
  | { readonly body: string }
  | 'hang'
  | 'stall'
  | 'huge'
  | 'reset'

export type ExtractionServer = {
  /** Ends in `/v1`. */
  readonly url: string
  readonly requests: readonly ExtractionRequest[]
  readonly violations: readonly string[]
  /** One each; the last one stays. */
  answers(...answers: (ScriptedAnswer | ((request: ExtractionRequest) => ScriptedAnswer))[]): void
  close(): Promise<void>
}

export async function openExtractionServer(key: string | null = null): Promise<ExtractionServer> {
  const requests: ExtractionRequest[] = []
  const violations: string[] = []
  const sockets = new Set<Socket>()
  let scripted: (ScriptedAnswer | ((request: ExtractionRequest) => ScriptedAnswer))[] = [{ report: {} }]
  const server = createServer((message, response) => {
    void (async () => {
      const body = await bodyOf(message)
      const wrong = key !== null && message.headers.authorization !== `Bearer ${key}`
      if (wrong) return refuse(response, 401, { code: 'invalid_api_key' })
      if (message.method !== 'POST' || message.url !== '/v1/chat/completions') return refuse(response, 404, {})
      const request = requestOf(message, body)
      requests.push(request)
      violations.push(...violationsOf(body))
      const [next] = scripted.length > 1 ? scripted.splice(0, 1) : scripted
      const answer = typeof next === 'function' ? next(request) : next
      if (answer !== undefined) give(response, answer)
    })().catch((error: unknown) => violations.push(String(error)))
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    violations,
    answers: (...answers) => void (scripted = answers),
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function bodyOf(message: IncomingMessage): Promise<Fields> {
  const chunks: Buffer[] = []
  for await (const chunk of message) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString('utf8')) as Fields
}

function requestOf({ headers }: IncomingMessage, body: Fields): ExtractionRequest {
  const [system, user] = body['messages'] as { content: string }[]
  const { transcript } = JSON.parse(user?.content ?? '{}') as Pick<ExtractionRequest, 'transcript'>
  return { headers, body, instructions: system?.content ?? '', transcript }
}

function give(response: ServerResponse, answer: ScriptedAnswer): void {
  if (answer === 'hang') return
  if (answer === 'reset') return void response.socket?.destroy()
  if (answer === 'stall' || answer === 'huge') {
    response.writeHead(200, { 'content-type': 'application/json' })
    const piece = `{"choices": [{"message": {"content": "${'x'.repeat(65_536)}`
    if (answer === 'stall') return void response.write(piece)
    const pour = (): void => {
      if (response.write(piece)) setImmediate(pour)
      else response.once('drain', pour)
    }
    return pour()
  }
  if ('status' in answer) return refuse(response, answer.status, answer.error ?? {}, answer.headers)
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end('body' in answer ? answer.body : JSON.stringify(completionOf(answer)))
}

function completionOf(
  answer: { report: unknown; finish?: string } | { content: string | null; refusal?: string },
): object {
  const isReport = 'report' in answer
  const message = isReport
    ? { role: 'assistant', content: JSON.stringify(answer.report), refusal: null }
    : { role: 'assistant', content: answer.content, refusal: answer.refusal ?? null }
  const finish = isReport ? (answer.finish ?? 'stop') : 'stop'
  return { id: 'chatcmpl-1', object: 'chat.completion', choices: [{ index: 0, message, finish_reason: finish }] }
}

function refuse(
  response: ServerResponse,
  status: number,
  error: Fields,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify({ error: { message: 'refused', type: 'invalid_request_error', ...error } }))
}

const known = ['model', 'messages', 'max_tokens', 'max_completion_tokens', 'temperature', 'response_format']

function violationsOf(body: Fields): string[] {
  const unknown = Object.keys(body).filter((name) => !known.includes(name))
  const format = body['response_format'] as {
    type: string
    json_schema?: { name: string; strict: boolean; schema: unknown }
  }
  const schema = format?.type === 'json_schema' ? schemaViolations(format.json_schema?.schema, '#') : []
  return [...unknown.map((name) => `unknown field ${name}`), ...schema]
}

/** Of structured outputs in strict mode: https://platform.openai.com/docs/guides/structured-outputs "Supported schemas". */
function schemaViolations(schema: unknown, at: string): string[] {
  const { type, properties, required, additionalProperties, anyOf, items, ...rest } = schema as {
    type?: string
    properties?: Record<string, unknown>
    required?: string[]
    additionalProperties?: boolean
    anyOf?: unknown[]
    items?: unknown
  }
  const unknown = Object.keys(rest).filter((keyword) => keyword !== 'enum')
  const names = Object.keys(properties ?? {})
  return [
    ...unknown.map((keyword) => `${at}: ${keyword} is not supported`),
    ...(type === undefined && anyOf === undefined ? [`${at}: no type`] : []),
    ...(type === 'object' && additionalProperties !== false ? [`${at}: additionalProperties must be false`] : []),
    ...names.filter((name) => !required?.includes(name)).map((name) => `${at}: ${name} is not required`),
    ...names.flatMap((name) => schemaViolations(properties?.[name], `${at}/${name}`)),
    ...(anyOf ?? []).flatMap((one, index) => schemaViolations(one, `${at}/anyOf/${index}`)),
    ...(items === undefined ? [] : schemaViolations(items, `${at}/items`)),
  ]
}
