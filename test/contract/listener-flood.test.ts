/**
 * What strangers may cost a listener, over every driver that loads here: connections of one address, heads and bodies that never end, answers
 * that nobody reads. docs/limits.md says what uWebSockets.js cannot do of it. Several clients are several addresses of loopback.
 */
import { EventEmitter, once } from 'node:events'
import net from 'node:net'
import tls from 'node:tls'
import { test, type Test } from 'tap'
import { WebSocket } from 'ws'
import type { SocketDecision } from '../../model/listener.ts'
import { Problem } from '../../model/problem.ts'
import { createReadyResponse } from '../../net/http/ready-response.ts'
import { eachDriver, json, raw, serve } from '../scenes/listener.ts'
import { fakeTls } from '../scenes/tls.ts'

/** Loopback counts as any other address. */
const counted = { isExempt: () => false }

/** The key comes first, then the body; its reader's problem is the answer. */
async function keyThenBody(request: Request): Promise<Response> {
  if (request.headers.get('x-api-key') !== 'good') return json({ type: 'UNAUTHORIZED' }, 401)
  const body = await request.bytes().catch((problem: Problem) => problem)
  if (!(body instanceof Problem)) return json({ bytes: body.length })
  return json({ type: body.type }, body.type === 'PAYLOAD_TOO_LARGE' ? 413 : 503)
}

const post = (head: string, body = '') => `POST / HTTP/1.1\r\nHost: here\r\n${head}\r\n\r\n${body}`
const withKey = (head: string, body = '') => post(`x-api-key: good\r\n${head}`, body)
const ask = 'GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n'

/** A client that writes and never lets go. */
async function open(t: Test, port: number, { from = '127.0.0.1', text = '' } = {}): Promise<net.Socket> {
  const socket = net.connect({ port, host: '127.0.0.1', localAddress: from }).on('error', () => undefined)
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  if (text !== '') socket.write(text)
  return socket
}

const openMany = (t: Test, port: number, { count = 1, from = '127.0.0.1', text = '' }) =>
  Promise.all(Array.from({ length: count }, () => open(t, port, { from, text })))

/** As far as the head of the answer. */
async function answerOf(socket: net.Socket): Promise<string> {
  let text = ''
  while (!text.includes('\r\n\r\n')) text += String(((await once(socket, 'data')) as [Buffer])[0])
  return text
}

/** Also by a reset. */
const closed = (socket: net.Socket): Promise<void> =>
  new Promise((resolve) => (socket.destroyed ? resolve() : socket.once('close', () => resolve())))

async function untilOpen(sockets: readonly net.Socket[], most: number): Promise<void> {
  const closes = sockets.map((socket) => closed(socket))
  while (stillOpen(sockets) > most) await Promise.race(closes.filter((_, index) => !sockets[index]?.destroyed))
}

const stillOpen = (sockets: readonly net.Socket[]): number => sockets.filter((socket) => !socket.destroyed).length

const connections: Parameters<typeof eachDriver>[0] = {
  'ten times as many idle sockets of one client as it may have shut nobody out': async (t, driver) => {
    const { port } = await serve(t, driver, {
      ...counted,
      maxConnections: 100,
      maxConnectionsPerAddress: 20,
      fetch: async () => new Response('served'),
    })
    await openMany(t, port, { count: 200, from: '127.0.0.2' })
    for (const from of ['127.0.0.3', '127.0.0.4']) t.match(await raw(port, ask, from), /served$/, from)
  },

  'a client at one address is bounded whatever it sends: nothing, half a head, a request now and then': async (
    t,
    driver,
  ) => {
    const { port } = await serve(t, driver, {
      ...counted,
      maxConnectionsPerAddress: 10,
      fetch: async () => new Response('served'),
    })
    for (const text of ['', 'GET / HTTP/1.1\r\nHo', 'GET / HTTP/1.1\r\nHost: here\r\n\r\n']) {
      const sockets = await openMany(t, port, { count: 60, from: '127.0.0.2', text })
      for (const socket of sockets) socket.resume()
      await untilOpen(sockets, 10)
      t.match(await raw(port, ask, '127.0.0.3'), /served$/)
      for (const socket of sockets) socket.destroy()
    }
  },

  'one address has its own places, whatever others hold, and a place that becomes free is taken': async (t, driver) => {
    const { port } = await serve(t, driver, {
      ...counted,
      maxConnectionsPerAddress: 2,
      fetch: async () => new Response('served'),
    })
    const held = await openMany(t, port, { count: 2, from: '127.0.0.2' })
    t.match(await raw(port, ask, '127.0.0.3'), /served$/)
    for (const socket of held) socket.destroy()
    while (!(await raw(port, ask, '127.0.0.2')).endsWith('served')) t.comment('its place is not free yet')
  },

  'an address that stands for many clients is bounded only by the number in all': async (t, driver) => {
    const { port } = await serve(t, driver, {
      isExempt: (address) => address === '127.0.0.2',
      maxConnectionsPerAddress: 2,
      fetch: async () => new Response('served'),
    })
    const sockets = await openMany(t, port, { count: 50, from: '127.0.0.2' })
    t.match(await raw(port, ask, '127.0.0.2'), /served$/)
    t.equal(stillOpen(sockets), 50)
  },

  'a head that comes by a byte now and then is dropped at its deadline': async (t, driver) => {
    if (driver === 'uws') return void t.pass('uws', { skip: 'its deadline is its own, of about 30 s' })
    const { port } = await serve(t, driver, { headerTimeout: 300, fetch: async () => new Response('served') })
    const socket = await open(t, port, { text: 'GET / HTTP/1.1\r\nX-Slow: ' })
    const drip = setInterval(() => socket.write('a'), 20)
    t.teardown(() => clearInterval(drip))
    await closed(socket.resume())
    t.pass('closed while it was still sending')
  },

  'an answer that nobody reads is given up, and costs no copy of its own': async (t, driver) => {
    const large = new Uint8Array(8 * 1024 * 1024)
    const { port } = await serve(t, driver, {
      writeTimeout: 300,
      fetch: async () => createReadyResponse(large, 200, { 'content-type': 'x/y' }),
    })
    const before = process.memoryUsage()
    const sockets = await openMany(t, port, { count: 30, text: 'GET / HTTP/1.1\r\nHost: here\r\n\r\n' })
    await Promise.all(sockets.map((socket) => once(socket, 'readable')))
    const { arrayBuffers, rss } = process.memoryUsage()
    t.ok(
      arrayBuffers - before.arrayBuffers < 4 * large.length,
      `${arrayBuffers - before.arrayBuffers} bytes of buffers`,
    )
    t.ok(rss - before.rss < 15 * large.length, `${rss - before.rss} bytes more`)
    if (driver === 'uws') return
    // Nobody has read more than what the system took at once.
    await Promise.all(sockets.map(closedUnread))
    t.equal(stillOpen(sockets), 0)
  },
}

/** Its end, without having read on before: it comes behind what was sent. */
async function closedUnread(socket: net.Socket): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 700))
  await closed(socket.resume())
}

const bodies: Parameters<typeof eachDriver>[0] = {
  'who shows no key is answered before its body, and the rest of the body is of no use to it': async (t, driver) => {
    const { port } = await serve(t, driver, { fetch: keyThenBody })
    const heads = [
      'Content-Length: 60000',
      'Transfer-Encoding: chunked',
      'Expect: 100-continue\r\nContent-Length: 60000',
    ]
    const begin = (head: string) => (head.includes('chunked') ? '5\r\nhello\r\n' : 'hello')
    for (const answer of await Promise.all(heads.map((head) => raw(port, post(head, begin(head))))))
      t.match(answer, /HTTP\/1\.1 401 [^]*UNAUTHORIZED/)
  },

  '600 bodies that never end, without a key, cost next to nothing': async (t, driver) => {
    const { port } = await serve(t, driver, { maxBodyBytes: 1024 * 1024, fetch: keyThenBody })
    const before = process.memoryUsage().rss
    const text = post('Content-Length: 1000000', 'x'.repeat(200_000))
    const sockets = await openMany(t, port, { count: 600, text })
    for (const answer of await Promise.all(sockets.map(answerOf))) t.match(answer, / 401 /)
    const more = process.memoryUsage().rss - before
    t.ok(more < 90 * 1024 * 1024, `${Math.round(more / 1024 / 1024)} MiB more`)
  },

  'bodies in flight have a budget: beyond it 503, small ones have a part of their own, and all of it comes back':
    async (t, driver) => {
      const { port } = await serve(t, driver, {
        maxBodyBytes: 1024 * 1024,
        maxBodyBytesInFlight: 4 * 1024 * 1024,
        fetch: keyThenBody,
      })
      const text = withKey('Content-Length: 1000000', 'x'.repeat(999_999))
      const sockets = await openMany(t, port, { count: 12, text })
      const { promise: ninth, resolve } = Promise.withResolvers<void>()
      let refused = 0
      const count = (answer: string): void => {
        refused += Number(answer.includes(' 503 '))
        if (refused === 9) resolve()
      }
      for (const socket of sockets) answerOf(socket).then(count, () => undefined)
      await ninth
      const ping = () => raw(port, withKey('Connection: close\r\nContent-Length: 5', 'hello'))
      t.match(await ping(), /200 [^]*"bytes":5/)
      for (const socket of sockets) socket.destroy()
      const large = withKey('Connection: close\r\nContent-Length: 1000000', 'x'.repeat(1_000_000))
      while (!(await raw(port, large)).includes('"bytes":1000000')) t.comment('what was held is not free yet')
    },

  'one address has no more than its part of the budget': async (t, driver) => {
    const { port } = await serve(t, driver, {
      ...counted,
      maxBodyBytes: 1024 * 1024,
      maxBodyBytesInFlight: 8 * 1024 * 1024,
      fetch: keyThenBody,
    })
    const text = withKey('Content-Length: 1000000', 'x'.repeat(999_999))
    const sockets = await openMany(t, port, { count: 5, from: '127.0.0.2', text })
    await Promise.race(sockets.map(async (socket) => t.match(await answerOf(socket), / 503 /)))
    const large = withKey('Connection: close\r\nContent-Length: 1000000', 'x'.repeat(1_000_000))
    t.match(await raw(port, large, '127.0.0.3'), /"bytes":1000000/)
  },

  'a body in pieces of one byte costs what it holds': async (t, driver) => {
    const { port } = await serve(t, driver, { maxBodyBytes: 1024 * 1024, fetch: keyThenBody })
    const before = process.memoryUsage()
    const socket = await open(t, port, { text: withKey('Transfer-Encoding: chunked') })
    const pieces = '1\r\nx\r\n'.repeat(10_000)
    for (let count = 0; count < 15; count += 1) if (!socket.write(pieces)) await once(socket, 'drain')
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    const more = heapUsed + arrayBuffers - before.heapUsed - before.arrayBuffers
    t.ok(more < 12 * 1024 * 1024, `${Math.round(more / 1024 / 1024)} MiB more for 150,000 bytes`)
    socket.write('0\r\n\r\n')
    t.match(await answerOf(socket), /200 /)
  },

  'Expect: 100-continue is told to go on only when its body is wanted': async (t, driver) => {
    const { port } = await serve(t, driver, { fetch: keyThenBody })
    const expecting = 'Expect: 100-continue\r\nContent-Length: 5'
    const wanted = await open(t, port, { text: withKey(expecting) })
    t.match(await answerOf(wanted), /^HTTP\/1\.1 100 Continue\r\n\r\n/)
    wanted.write('hello')
    t.match(await answerOf(wanted), /"bytes":5|200 /)
    // The library of the other driver tells everybody to go on.
    if (driver === 'uws') return
    t.match(await raw(port, post(expecting)), /^HTTP\/1\.1 401 [^]*connection: close/i)
    t.match(await raw(port, withKey('Expect: 100-continue\r\nContent-Length: 99999999')), /^HTTP\/1\.1 413 /)
  },

  'a length that is a lie: who sends less is dropped at the deadline, what is more is no part of the body': async (
    t,
    driver,
  ) => {
    const seen: number[] = []
    const { port } = await serve(t, driver, {
      requestTimeout: 300,
      async fetch(request) {
        const { length } = await request.bytes()
        seen.push(length)
        return json({ bytes: length })
      },
    })
    t.notMatch(await raw(port, withKey('Content-Length: 50', 'less')), /HTTP\/1\.1 200/)
    t.same(seen, [])
    await raw(port, withKey('Connection: close\r\nContent-Length: 4', 'more than that'))
    for (const head of ['Content-Length: -1', 'Content-Length: 1e3', 'Content-Length: 5\r\nTransfer-Encoding: chunked'])
      t.notMatch(await raw(port, withKey(head, 'hello')), /HTTP\/1\.1 200/, head)
    t.same(
      seen.filter((length) => length !== 4),
      [],
    )
  },

  'a body that comes by a byte now and then is dropped at its deadline': async (t, driver) => {
    const { port } = await serve(t, driver, { requestTimeout: 400, fetch: keyThenBody })
    const socket = await open(t, port, { text: withKey('Content-Length: 5000') })
    const drip = setInterval(() => socket.write('a'), 20)
    t.teardown(() => clearInterval(drip))
    await closed(socket.resume())
    t.pass('closed while it was still sending')
  },

  'a body may be read in every way there is, once': async (t, driver) => {
    const ways: Record<string, (request: Request) => Promise<unknown>> = {
      json: (request) => request.json(),
      text: (request) => request.text(),
      buffer: async (request) => (await request.arrayBuffer()).byteLength,
      blob: async (request) => (await request.blob()).text(),
      stream: async ({ body }) => Buffer.concat(await Array.fromAsync(body as ReadableStream<Uint8Array>)).toString(),
      clone: async (request) => [await request.clone().text(), await request.text()],
      twice: async (request) => [
        await request.text(),
        await request.text().catch((error: Error) => error.name),
        request.bodyUsed,
      ],
    }
    const { port } = await serve(t, driver, {
      fetch: async (request) => json((await ways[new URL(request.url).pathname.slice(1)]?.(request)) ?? null),
    })
    const send = async (way: string, method = 'POST') => {
      const head = `${method} /${way} HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 7\r\n\r\n`
      return JSON.parse((await raw(port, `${head}{"a":1}`)).split('\r\n\r\n')[1] ?? '') as unknown
    }
    t.same(await send('json'), { a: 1 })
    t.equal(await send('buffer'), 7)
    for (const way of ['text', 'blob', 'stream']) t.equal(await send(way), '{"a":1}', way)
    t.equal(await send('text', 'PROPFIND'), '{"a":1}', 'of a method that nobody uses')
    t.same(await send('clone'), ['{"a":1}', '{"a":1}'])
    t.same(await send('twice'), ['{"a":1}', 'TypeError', true])
  },

  'a connection goes on after a request that was refused together with its whole body': async (t, driver) => {
    const { port } = await serve(t, driver, { fetch: keyThenBody })
    const text = post('Content-Length: 5', 'hello') + withKey('Connection: close\r\nContent-Length: 5', 'hello')
    const socket = await open(t, port, { text: text.slice(0, 60) })
    socket.write(text.slice(60))
    let answer = ''
    socket.on('data', (chunk) => (answer += String(chunk)))
    await once(socket, 'close')
    t.match(answer, /401 [^]*200 [^]*"bytes":5/)
  },
}

await eachDriver({ ...connections, ...bodies })

test('over TLS places count from before the handshake, and a proven key keeps one', async (t) => {
  const { port } = await serve(t, 'node', {
    ...counted,
    tls: fakeTls,
    maxConnectionsPerAddress: 3,
    headerTimeout: 500,
    async fetch(_request, info) {
      info.proved?.()
      return new Response('served')
    },
  })
  const proven = tls.connect({ port, host: '127.0.0.1', ca: fakeTls.cert }).on('error', () => undefined)
  t.teardown(() => proven.destroy())
  await once(proven, 'secureConnect')
  proven.write(`${keepAlive}\r\n`)
  await answerOf(proven)
  const half = await openMany(t, port, { count: 30, text: '\x16\x03' })
  await untilOpen(
    half.map((socket) => socket.resume()),
    2,
  )
  await untilOpen(half, 0)
  t.notOk(proven.destroyed)
  proven.write(`${keepAlive}\r\n`)
  t.match(await answerOf(proven), /200 OK/)
})

const keepAlive = 'GET / HTTP/1.1\r\nHost: here\r\n'

test('the node driver cuts who waits without a proven key first, and nobody who has something to do', async (t) => {
  const answered = Promise.withResolvers<Response>()
  const asked = new EventEmitter()
  const accept = async (): Promise<SocketDecision> => ({
    accept: true,
    open: () => ({ message: () => undefined, closed: () => undefined }),
  })
  const { port, socketUrl } = await serve(t, 'node', {
    ...counted,
    maxConnections: 4,
    sockets: { '/socket': { upgrade: accept, maxFrameBytes: 100, maxBufferedBytes: 100 } },
    async fetch(request, info) {
      if (request.headers.has('x-api-key')) info.proved?.()
      if (!request.headers.has('x-wait')) return new Response('served')
      asked.emit('waiting')
      return answered.promise.then((response) => response.clone())
    },
  })
  const webSocket = new WebSocket(`${socketUrl}/socket`)
  t.teardown(() => webSocket.terminate())
  await once(webSocket, 'open')
  const proven = await open(t, port, { from: '127.0.0.2', text: `${keepAlive}x-api-key: good\r\n\r\n` })
  await answerOf(proven)
  const openBusy = async (from: string): Promise<net.Socket> => {
    const waiting = once(asked, 'waiting')
    const socket = await open(t, port, { from, text: `${keepAlive}x-wait: 1\r\n\r\n` })
    await waiting
    return socket
  }
  const busy = await openBusy('127.0.0.3')
  const idle = await open(t, port, { from: '127.0.0.4', text: `${keepAlive}\r\n` })
  await answerOf(idle)
  const cut = closed(idle.resume())
  for (const from of ['127.0.0.5', '127.0.0.6', '127.0.0.7']) t.match(await raw(port, ask, from), /served$/)
  await cut
  t.same([proven.destroyed, busy.destroyed, webSocket.readyState], [false, false, WebSocket.OPEN])
  const provenCut = closed(proven.resume())
  const flood = [await openBusy('127.0.0.9'), await openBusy('127.0.0.9')]
  await provenCut
  t.equal(await raw(port, ask, '127.0.0.8'), '', 'all have something to do')
  answered.resolve(new Response('late'))
  t.match(await answerOf(busy), /late|200/)
  t.equal(stillOpen(flood), 2)
})
