/**
 * Owns the client of the API bench: so many kept connections, each with one request under way, over plain sockets, so that the client costs
 * little beside what it measures. An answer that is not 200 and whole, by its length or its last chunk, ends the bench.
 */
import net from 'node:net'

export type Target = {
  readonly path: string
  readonly key: string
  /** It is posted with these headers besides; without it the target is read. */
  readonly post?: { readonly headers: Readonly<Record<string, string>>; readonly body: string }
}

export type Load = {
  readonly requests: number
  /** From the first request to the last answer. */
  readonly ms: number
  /** Of each request, ms. */
  readonly latencies: readonly number[]
}

const headEnd = Buffer.from('\r\n\r\n')
const lastChunk = Buffer.from('\r\n0\r\n\r\n')

/** Connection `n` asks for the targets n, n + connections, … in turn. */
export async function loadFor(
  ms: number,
  options: { readonly url: string; readonly targets: readonly Target[]; readonly connections: number },
): Promise<Load> {
  const { hostname, port } = new URL(options.url)
  const texts = options.targets.map((target) => textOf(target, `${hostname}:${port}`))
  const latencies: number[] = []
  const began = performance.now()
  const until = began + ms
  const askAll = async (first: number): Promise<void> => {
    const connection = await connect(Number(port), hostname)
    for (let turn = first; performance.now() < until; turn += options.connections) {
      const asked = performance.now()
      await connection.ask(texts[turn % texts.length] as Buffer)
      latencies.push(performance.now() - asked)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: options.connections }, (_, index) => askAll(index)))
  return { requests: latencies.length, ms: performance.now() - began, latencies }
}

export function textOf({ path, key, post }: Target, host: string): Buffer {
  if (!post) return Buffer.from(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${key}\r\naccept: */*\r\n\r\n`)
  const headers = {
    host,
    authorization: `Bearer ${key}`,
    'content-length': Buffer.byteLength(post.body),
    ...post.headers,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${post.body}`)
}

async function connect(port: number, host: string) {
  const socket = net.connect({ port, host, noDelay: true })
  let waiting = Promise.withResolvers<void>()
  let answer = Buffer.alloc(0)
  const fail = (error: Error): void => waiting.reject(error)
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the server closed the connection')))
  socket.on('data', (chunk) => {
    answer = answer.length === 0 ? chunk : Buffer.concat([answer, chunk])
    const rest = missingOf(answer)
    if (rest > 0) return
    if (rest < 0 || !answer.subarray(0, 12).equals(ok)) return fail(new Error(`not the answer: ${answer.toString()}`))
    answer = Buffer.alloc(0)
    waiting.resolve()
  })
  await new Promise((resolve) => socket.once('connect', resolve))
  return {
    ask(text: Buffer): Promise<void> {
      waiting = Promise.withResolvers()
      socket.write(text)
      return waiting.promise
    },
    close: () => void socket.removeAllListeners('close').destroy(),
  }
}

const ok = Buffer.from('HTTP/1.1 200')

/** Bytes that have not arrived yet, negative when too many did. */
function missingOf(answer: Buffer): number {
  const end = answer.indexOf(headEnd)
  if (end < 0) return 1
  const head = answer.toString('latin1', 0, end)
  if (/\r\ntransfer-encoding: chunked/i.test(head)) return answer.subarray(-lastChunk.length).equals(lastChunk) ? 0 : 1
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  if (length === undefined) throw new Error('an answer without a length')
  return end + headEnd.length + Number(length) - answer.length
}
