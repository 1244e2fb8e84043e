/**
 * The rules of the listener port, over every driver that loads here. With LISTENER_DRIVER set only that driver is proved, and it must load;
 * uws-under-newer-libc.test.ts runs this file so.
 */
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { networkInterfaces } from 'node:os'
import { inspect } from 'node:util'
import { test } from 'tap'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { systemClock } from '../../app/clock.ts'
import { presetVariable } from '../../app/config.ts'
import { createLightRequest } from '../../net/http/light-request.ts'
import { listen } from '../../gateway/listener/listen.ts'
import { createLightHeaders, pairsOf } from '../../net/http/light-headers.ts'
import type { SocketConnection, SocketDecision, SocketRoute } from '../../model/listener.ts'
import { Problem } from '../../model/problem.ts'
import { createReadyResponse } from '../../net/http/ready-response.ts'
import { createRandom } from '../fake/random.ts'
import { eachDriver, get, json, maxBodyBytes, notFound, raw, serve, type Driver } from '../scenes/listener.ts'
import { fakeTls } from '../scenes/tls.ts'

function deferred<Value>() {
  return Promise.withResolvers<Value>()
}

async function postChunked(url: string, chunks: Iterable<Uint8Array>) {
  const request = http.request(url, { method: 'POST', agent: false }).on('error', () => undefined)
  const answered = once(request, 'response') as Promise<[http.IncomingMessage]>
  const closed = once(request, 'close')
  const feed = async (): Promise<void> => {
    for (const chunk of chunks) {
      if (request.destroyed || request.writableEnded) return
      if (!request.write(chunk)) await Promise.race([once(request, 'drain'), closed])
    }
    request.end()
  }
  void feed()
  const [response] = await answered
  let text = ''
  response.setEncoding('utf8')
  for await (const piece of response) text += piece
  request.destroy()
  await closed
  return { status: response.statusCode, headers: response.headers, text }
}

function* forever(): Generator<Uint8Array> {
  for (;;) yield new Uint8Array(16 * 1024)
}

type Heard = {
  readonly route: SocketRoute
  readonly texts: string[]
  readonly opened: Promise<SocketConnection>
  readonly closed: Promise<number>
  readonly closings: number[]
}

/** A route that takes everybody and answers each text with itself. */
function echo(overrides: Partial<SocketRoute> = {}): Heard {
  const texts: string[] = []
  const closings: number[] = []
  const opened = deferred<SocketConnection>()
  const closed = deferred<number>()
  const open = (connection: SocketConnection) => {
    opened.resolve(connection)
    return {
      message(text: string) {
        texts.push(text)
        connection.send(text)
      },
      closed(code: number) {
        closings.push(code)
        closed.resolve(code)
      },
    }
  }
  const upgrade = async (): Promise<SocketDecision> => ({ accept: true, open })
  const route = { upgrade, maxFrameBytes: 1000, maxBufferedBytes: 256 * 1024, ...overrides }
  return { route, texts, opened: opened.promise, closed: closed.promise, closings }
}

async function connect(t: Test, url: string, options: object = {}): Promise<WebSocket> {
  const socket = new WebSocket(url, options)
  t.teardown(() => socket.terminate())
  await once(socket, 'open')
  return socket
}

const closeOf = async (socket: WebSocket): Promise<[number, string]> => {
  const [code, reason] = (await once(socket, 'close')) as [number, Buffer]
  return [code, reason.toString()]
}

/** The status and body of the answer to an upgrade that was refused. */
async function refusal(url: string, options: object = {}): Promise<[number | undefined, string]> {
  const socket = new WebSocket(url, options).on('error', () => undefined)
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, http.IncomingMessage]
  let text = ''
  for await (const piece of response) text += String(piece)
  return [response.statusCode, text]
}

const requests: Readonly<Record<string, (t: Test, driver: Driver) => Promise<void>>> = {
  'a request reaches the application with method, URL, headers and the address of the peer': async (t, driver) => {
    const served = await serve(t, driver, {
      fetch: async (request, info) =>
        json({ method: request.method, url: request.url, word: request.headers.get('x-word'), ...info }),
    })
    const headers = { 'x-word': 'two words', 'x-forwarded-for': '6.6.6.6' }
    const response = await get(`${served.url}/a/b?c=d&e=%20`, { method: 'DELETE' }, headers)
    t.same(await response.json(), {
      method: 'DELETE',
      url: `${served.url}/a/b?c=d&e=%20`,
      word: 'two words',
      remoteAddress: '127.0.0.1',
    })
  },

  'a head of 20 KiB is refused': async (t, driver) => {
    const served = await serve(t, driver, { fetch: async () => json('taken') })
    const head = `GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Long: ${'a'.repeat(20 * 1024)}\r\n\r\n`
    t.notMatch(await raw(served.port, head), /^HTTP\/1\.1 2/)
  },

  'on all addresses of the machine a peer has one address, IPv4 or IPv6, as limits and logs know it': async (
    t,
    driver,
  ) => {
    const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
    if (!own.some(({ address }) => address === '::1')) return void t.pass('IPv6', { skip: 'this machine has none' })
    const served = await serve(t, driver, { host: '::', fetch: async (_request, info) => json(info) })
    for (const [host, remoteAddress] of [
      ['127.0.0.1', '127.0.0.1'],
      ['[::1]', '::1'],
    ])
      t.same(await (await get(`http://${host}:${served.port}/`)).json(), { remoteAddress })
  },

  'a target that looks like another host stays a path, and a Host that is none is answered 400': async (t, driver) => {
    const { port } = await serve(t, driver, { fetch: async (request) => new Response(request.url) })
    const head = (target: string, host: string) =>
      `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
    t.match(await raw(port, head('//elsewhere/x', 'here')), /http:\/\/here\/\/elsewhere\/x$/)
    t.match(await raw(port, head('/', 'me@elsewhere/path')), /^HTTP\/1.1 400 /)
  },

  'whatever the method is, the application is asked: it knows which are allowed': async (t, driver) => {
    const { port } = await serve(t, driver, { fetch: async ({ method }) => new Response(method, { status: 405 }) })
    for (const method of ['TRACE', 'PROPFIND', 'OPTIONS'])
      t.match(
        await raw(port, `${method} / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n`),
        new RegExp(`^HTTP/1.1 405 [^]*${method}$`),
      )
  },

  'a body arrives whole, up to the limit': async (t, driver) => {
    const { url } = await serve(t, driver, {
      fetch: async (request) => new Response(await request.bytes(), { headers: { 'content-type': 'x/y' } }),
    })
    const body = new Uint8Array(maxBodyBytes).map((_, index) => index % 251)
    const response = await get(url, { method: 'PUT', body })
    t.equal(response.headers.get('content-type'), 'x/y')
    t.same(Buffer.from(await response.bytes()), Buffer.from(body))
    const chunked = await postChunked(url, [body.subarray(0, 100), body.subarray(100, 30_000), body.subarray(30_000)])
    t.equal(chunked.status, 200)
    t.equal(chunked.text.length, new TextDecoder().decode(body).length)
    const empty = await get(url, { method: 'POST' })
    t.equal(await empty.text(), '')
  },

  'a body over the limit is answered with the 413 of the application, which never has it': async (t, driver) => {
    let taken = 0
    const refusal = (request: Request) => json({ type: 'PAYLOAD_TOO_LARGE', path: new URL(request.url).pathname }, 413)
    const { url, port } = await serve(t, driver, {
      async fetch(request) {
        const body = await request.bytes().catch((problem: Problem) => problem)
        if (body instanceof Problem) return body.type === 'PAYLOAD_TOO_LARGE' ? refusal(request) : json({}, 500)
        return new Response(String(++taken))
      },
      tooLarge: refusal,
    })
    const expected = { type: 'PAYLOAD_TOO_LARGE', path: '/x' }
    const declared = await postChunkless(`${url}/x`, maxBodyBytes + 1)
    t.equal(declared.status, 413)
    t.same(JSON.parse(declared.text), expected)
    const chunked = await postChunked(`${url}/x`, [new Uint8Array(maxBodyBytes), new Uint8Array(1)])
    t.equal(chunked.status, 413)
    t.same(JSON.parse(chunked.text), expected)
    const endless = await postChunked(`${url}/x`, forever())
    t.equal(endless.status, 413)
    t.same(JSON.parse(endless.text), expected)
    const size = (maxBodyBytes + 1).toString(16)
    const text = await raw(
      port,
      `POST /x HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n${size}\r\n${'x'.repeat(maxBodyBytes + 1)}\r\n0\r\n\r\n`,
    )
    t.match(text, /^HTTP\/1.1 413 [^]*connection: close/i, 'the connection is closed after it')
    t.equal(taken, 0)
  },

  'a path may take a longer body than others, by its method': async (t, driver) => {
    const { url } = await serve(t, driver, {
      maxBodyBytesFor: (method, path) => (method === 'POST' && path === '/files' ? 4 * maxBodyBytes : null),
      async fetch(request) {
        const body = await request.bytes().catch((problem: Problem) => problem)
        return body instanceof Problem ? json({ type: body.type }, 413) : json({ length: body.length })
      },
    })
    const asked = async (path: string, size: number, method = 'POST') =>
      (await get(`${url}${path}`, { method, body: new Uint8Array(size) })).status
    t.equal(await asked('/files?of=all', 4 * maxBodyBytes), 200)
    t.equal(await asked('/files', 4 * maxBodyBytes + 1), 413)
    t.equal(await asked('/files', maxBodyBytes + 1, 'PUT'), 413)
    t.equal(await asked('/other', maxBodyBytes + 1), 413)
    const chunked = await postChunked(`${url}/files`, [new Uint8Array(maxBodyBytes), new Uint8Array(2 * maxBodyBytes)])
    t.equal(chunked.status, 200)
  },

  'HEAD is answered without a body': async (t, driver) => {
    const { port } = await serve(t, driver, {
      fetch: async (request) =>
        new Response('hello', { headers: { 'content-length': '5', 'x-method': request.method } }),
    })
    const answer = await raw(port, 'HEAD / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n')
    t.match(answer, /^HTTP\/1.1 200 /)
    t.match(answer, /content-length: 5\r\n/i)
    t.match(answer, /x-method: HEAD\r\n/i)
    t.ok(answer.endsWith('\r\n\r\n'))
  },

  'a request without a body is a Request in everything that can be asked of it': async (t, driver) => {
    const { url, port } = await serve(t, driver, {
      fetch: async (request) => {
        const copy = request.clone()
        return json({
          is: request instanceof Request && request.headers instanceof Headers && copy instanceof Request,
          url: request.url,
          copied: [copy.url, copy.method, copy.headers.get('x-word')],
          repeated: request.headers.get('x-repeated'),
          names: [...request.headers.keys()].filter((name) => name.startsWith('x-')),
          latin: request.headers.get('x-latin'),
          body: [request.body, request.bodyUsed, await request.text()],
          rest: [request.mode, request.redirect, request.cache, request.signal.aborted],
        })
      },
    })
    const text = await raw(
      port,
      'GET /a/../b?c HTTP/1.1\r\nHost: here\r\nX-Word: w\r\nX-Repeated: 1\r\nX-Latin:  caf%C3%A9 \r\nX-Repeated: 2\r\nConnection: close\r\n\r\n',
    )
    t.same(JSON.parse(text.slice(text.indexOf('{'))), {
      is: true,
      url: 'http://here/b?c',
      copied: ['http://here/b?c', 'GET', 'w'],
      repeated: '1, 2',
      names: ['x-latin', 'x-repeated', 'x-word'],
      latin: 'caf%C3%A9',
      body: [null, false, ''],
      rest: ['cors', 'follow', 'default', false],
    })
    t.equal((await get(url, { method: 'DELETE' })).status, 200)
    t.equal((await get(url, { method: 'POST', body: 'x' })).status, 200)
  },

  'a target with credentials, or that is no URL, does not reach the application': async (t, driver) => {
    const { port } = await serve(t, driver, { fetch: async () => new Response('reached') })
    for (const target of ['http://me:secret@here/', 'http://me@here/', 'http://here:99999/'])
      t.match(
        await raw(port, `GET ${target} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n`),
        driver === 'node' ? /^HTTP\/1.1 400 / : /^HTTP\/1.1 505 /,
        target,
      )
  },

  'an answer that is ready as text goes out like any other': async (t, driver) => {
    const { port } = await serve(t, driver, {
      fetch: async (request) => {
        const path = new URL(request.url).pathname
        const status = Number(path.slice(1)) || 200
        const response = createReadyResponse(path === '/wide' ? '"größer 😀"' : '{"a":1}', status, {
          'content-type': 'application/json',
          'transfer-encoding': 'chunked',
        })
        response.headers.set('x-plain', 'plain value')
        if (path === '/odd') response.headers.append('set-cookie', 'a=1')
        if (path === '/odd') response.headers.append('set-cookie', 'b=2')
        if (path === '/read') await response.text()
        return response
      },
    })
    const answerTo = async (path: string, method = 'GET') => {
      const answer = await raw(port, `${method} ${path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n`)
      const [head = '', body] = Buffer.from(answer, 'latin1').toString().split('\r\n\r\n')
      return { head: head.toLowerCase(), body }
    }
    for (const path of ['/', '/odd', '/read']) {
      const { head, body } = await answerTo(path)
      t.match(head, /^http\/1\.1 200 /)
      t.match(head, /\r\ncontent-type: application\/json\r\n/)
      t.match(head, /\r\nx-plain: plain value\r\n/)
      t.match(`${head}\r\n`, /\r\ncontent-length: 7\r\n/)
      t.notMatch(head, /transfer-encoding/)
      t.equal(head.split('set-cookie: ').length - 1, path === '/odd' ? 2 : 0)
      t.equal(body, '{"a":1}')
    }
    const wide = await answerTo('/wide')
    t.match(`${wide.head}\r\n`, /\r\ncontent-length: 15\r\n/, 'bytes, not characters')
    t.equal(wide.body, '"größer 😀"')
    t.match((await answerTo('/404')).head, /^http\/1\.1 404 /)
    t.equal((await answerTo('/', 'HEAD')).body, '')
  },

  'several Set-Cookie headers stay several': async (t, driver) => {
    const headers = new Headers([
      ['set-cookie', 'a=1; Expires=Wed, 01 Jan 2025 00:00:00 GMT'],
      ['set-cookie', 'b=2'],
    ])
    const { url } = await serve(t, driver, { fetch: async () => new Response('x', { headers }) })
    const response = await get(url)
    t.same(response.headers.getSetCookie(), ['a=1; Expires=Wed, 01 Jan 2025 00:00:00 GMT', 'b=2'])
  },

  'an answer that is ready has a length; 204 and 304 have neither length nor body': async (t, driver) => {
    const { url, port } = await serve(t, driver, {
      fetch: async (request) => {
        const status = Number(new URL(request.url).pathname.slice(1))
        return new Response(status === 200 ? 'ready' : null, { status })
      },
    })
    const ready = await get(`${url}/200`)
    t.equal(ready.headers.get('content-length'), '5')
    t.equal(ready.headers.get('transfer-encoding'), null)
    for (const status of [204, 304]) {
      const answer = await raw(port, `GET /${status} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n`)
      t.match(answer, new RegExp(`^HTTP/1.1 ${status} `))
      t.notMatch(answer, /content-length|transfer-encoding/i)
      t.ok(answer.endsWith('\r\n\r\n'))
    }
    const empty = await raw(port, 'GET /404 HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n')
    t.match(empty, /content-length: 0\r\n/i)
  },

  'a header is Latin-1 on its way out, and 12 KiB of headers come in': async (t, driver) => {
    const { port } = await serve(t, driver, {
      fetch: async (request) => {
        const length = String(request.headers.get('x-long')?.length)
        const latin = createReadyResponse(length, 200, { 'x-latin': 'café' })
        return request.url.endsWith('/ready') ? latin : new Response(length, { headers: latin.headers })
      },
    })
    for (const path of ['/', '/ready']) {
      const head = `GET ${path} HTTP/1.1\r\nHost: here\r\nX-Long: ${'x'.repeat(12 * 1024)}\r\n`
      const answer = await raw(port, `${head}Connection: close\r\n\r\n`)
      t.match(answer, /^HTTP\/1.1 200 [^]*\r\nx-latin: caf\xe9\r\n[^]*\r\n\r\n12288$/)
    }
  },

  'a request with two lengths or two hosts does not reach the application, and nothing after it does': async (
    t,
    driver,
  ) => {
    let asked = 0
    const { port } = await serve(t, driver, { fetch: async () => new Response(String(++asked)) })
    const next = 'GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n'
    const lengths = 'Content-Length: 2\r\nContent-Length: 3\r\n'
    t.notMatch(await raw(port, `POST / HTTP/1.1\r\nHost: here\r\n${lengths}\r\nhi${next}`), /HTTP\/1.1 2/)
    const hosts = 'Host: here\r\nhost: there\r\nConnection: close\r\n'
    t.match(await raw(port, `GET / HTTP/1.1\r\n${hosts}\r\n`), /^HTTP\/1.1 400 /)
    t.equal(asked, 0)
  },

  'one connection serves several requests': async (t, driver) => {
    const { port } = await serve(t, driver, { fetch: async (request) => new Response(await request.text()) })
    const post = (text: string, end: string) =>
      `POST / HTTP/1.1\r\nHost: here\r\nContent-Length: ${text.length}\r\n${end}\r\n${text}`
    const answer = await raw(port, post('first', '') + post('second', 'Connection: close\r\n'))
    t.equal(answer.match(/HTTP\/1\.1 200/g)?.length, 2)
    t.match(answer, /first[^]*second$/)
  },

  'a streamed answer arrives piece by piece': async (t, driver) => {
    const source = deferred<ReadableStreamDefaultController<Uint8Array>>()
    const stream = () => new ReadableStream<Uint8Array>({ start: (controller) => source.resolve(controller) })
    const { url } = await serve(t, driver, {
      fetch: async () => new Response(stream(), { headers: { 'content-type': 'text/event-stream' } }),
    })
    const answering = get(url)
    const controller = await source.promise
    controller.enqueue(Buffer.from('data: 1\n\n'))
    const response = await answering
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    t.equal(Buffer.from((await reader.read()).value ?? []).toString(), 'data: 1\n\n')
    controller.enqueue(new Uint8Array(0))
    controller.enqueue(Buffer.from('data: 2\n\n'))
    t.equal(Buffer.from((await reader.read()).value ?? []).toString(), 'data: 2\n\n')
    controller.close()
    t.equal((await reader.read()).done, true)
  },

  'a reader that stops reading stops the source, and one that leaves cancels it': async (t, driver) => {
    const whole = 256 * 1024 * 1024
    const canceled = deferred<void>()
    let pulled = 0
    const endless = () =>
      new ReadableStream<Uint8Array>({
        pull(controller) {
          if (pulled >= whole) return controller.close()
          pulled += 64 * 1024
          controller.enqueue(new Uint8Array(64 * 1024))
        },
        cancel: () => canceled.resolve(),
      })
    const { url, port } = await serve(t, driver, {
      fetch: async (request) => new Response(request.url.endsWith('/endless') ? endless() : 'quick'),
    })
    const socket = net.connect(port, '127.0.0.1')
    socket.write('GET /endless HTTP/1.1\r\nHost: here\r\n\r\n')
    await once(socket, 'readable')
    for (let count = 0; count < 20; count++) t.equal(await (await get(url)).text(), 'quick')
    t.ok(pulled < whole / 4, `${pulled} bytes were pulled`)
    socket.destroy()
    await canceled.promise
  },

  'a client that leaves cancels a source that has nothing to say': async (t, driver) => {
    const canceled = deferred<void>()
    const silent = () =>
      new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(Buffer.from(': hello\n\n')),
        cancel: () => canceled.resolve(),
      })
    const { port } = await serve(t, driver, { fetch: async () => new Response(silent()) })
    const socket = net.connect(port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n')
    await once(socket, 'data')
    socket.destroy()
    await canceled.promise
  },

  'a client that leaves while the application thinks cancels the source that comes of it': async (t, driver) => {
    const asked = deferred<void>()
    const canceled = deferred<void>()
    const { port, close } = await serve(t, driver, {
      fetch: async (request) => {
        asked.resolve()
        await once(request.signal, 'abort')
        return new Response(new ReadableStream({ cancel: () => canceled.resolve() }))
      },
    })
    const socket = net.connect(port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n')
    await asked.promise
    socket.destroy()
    await canceled.promise
    await close(3_600_000)
  },

  'a large answer of known length arrives whole and says its length': async (t, driver) => {
    const piece = Buffer.alloc(100_000).map((_, index) => index % 253)
    const stream = (count: number) =>
      new ReadableStream<Uint8Array>({
        pull(controller) {
          if (count-- === 0) return controller.close()
          controller.enqueue(new Uint8Array(piece))
        },
      })
    const { url } = await serve(t, driver, {
      fetch: async () => new Response(stream(80), { status: 206, headers: { 'content-length': '8000000' } }),
    })
    const response = await get(url)
    t.equal(response.status, 206)
    t.equal(response.headers.get('content-length'), '8000000')
    const body = Buffer.from(await response.arrayBuffer())
    t.equal(body.length, 8_000_000)
    t.ok(body.subarray(7_900_000).equals(piece))
  },

  'an answer that was read before is seen as broken by the client': async (t, driver) => {
    const { url } = await serve(t, driver, {
      fetch: async () => {
        const response = new Response('read')
        await response.text()
        return response
      },
    })
    await t.rejects(fetch(url))
  },

  'an answer whose source breaks, or ends early, is seen as broken by the client': async (t, driver) => {
    const broken = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      controller.enqueue(new Uint8Array(10))
      setImmediate(() => setImmediate(() => controller.error(new Error('source broke'))))
    }
    const short = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      controller.enqueue(new Uint8Array(10))
      setImmediate(() => setImmediate(() => controller.close()))
    }
    const { url } = await serve(t, driver, {
      fetch: async (request) =>
        request.url.endsWith('/short')
          ? new Response(new ReadableStream({ start: short }), { headers: { 'content-length': '20' } })
          : new Response(new ReadableStream({ start: broken })),
    })
    // Over a connection that would be kept: its end is the only sign.
    const read = async (path: string) => (await fetch(url + path)).bytes()
    await t.rejects(read('/broken'))
    await t.rejects(read('/short'))
  },

  'a client that leaves aborts the signal of its request': async (t, driver) => {
    const asked = deferred<Request>()
    const { port } = await serve(t, driver, {
      fetch: (request) => {
        asked.resolve(request)
        return new Promise((resolve) =>
          request.signal.addEventListener('abort', () => resolve(new Response('too late'))),
        )
      },
    })
    const socket = net.connect(port, '127.0.0.1')
    socket.write('POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nhi')
    const request = await asked.promise
    t.equal(request.signal.aborted, false)
    const aborted = once(request.signal, 'abort')
    socket.destroy()
    await aborted
  },

  'a body that does not arrive in time is dropped, and the application never has it': async (t, driver) => {
    let asked = 0
    const { port } = await serve(t, driver, {
      requestTimeout: 200,
      fetch: async (request) => request.bytes().then(() => new Response(String(++asked))),
    })
    const answer = await raw(port, 'POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\nhalf')
    t.notMatch(answer, /^HTTP\/1.1 2/)
    t.equal(asked, 0)
  },

  'an application that throws after all is answered 500 without a word': async (t, driver) => {
    const { url } = await serve(t, driver, { fetch: async () => Promise.reject(new Error('a secret of the inside')) })
    const response = await get(url)
    t.equal(response.status, 500)
    t.equal(await response.text(), '')
  },

  'with certificate and key it speaks TLS': async (t, driver) => {
    const heard = echo()
    const { port } = await serve(t, driver, {
      tls: fakeTls,
      fetch: async (request) => new Response(`${request.url} ${await request.text()}`),
      sockets: { '/socket': heard.route },
    })
    const request = https.request({
      port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/x',
      ca: fakeTls.cert,
      agent: false,
    })
    request.end('hello')
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    let text = ''
    for await (const piece of response) text += String(piece)
    t.equal(text, `https://127.0.0.1:${port}/x hello`)
    const socket = await connect(t, `wss://127.0.0.1:${port}/socket`, { ca: fakeTls.cert })
    socket.send('over TLS')
    t.equal(String((await once(socket, 'message'))[0]), 'over TLS')
  },

  'a connection over the limit is closed at once, sockets count, and a place that becomes free is taken': async (
    t,
    driver,
  ) => {
    const heard = echo()
    const { port, socketUrl } = await serve(t, driver, {
      maxConnections: 2,
      sockets: { '/socket': heard.route },
      fetch: async () => new Response('served'),
    })
    const ask = () => raw(port, 'GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n')
    const kept = await connect(t, `${socketUrl}/socket`)
    const socket = await connect(t, `${socketUrl}/socket`)
    for (let count = 0; count < 3; count++) t.equal(await ask(), '')
    socket.close()
    await heard.closed
    while ((await ask()) === '') t.comment('its place is not free yet')
    socket.terminate()
    kept.terminate()
    const both = async () => (await Promise.all([ask(), ask()])).every((answer) => answer.endsWith('served'))
    while (!(await both())) t.comment('their places are not free yet')
  },

  'a port that is taken is an error': async (t, driver) => {
    const { port } = await serve(t, driver, {})
    await t.rejects(serve(t, driver, { port }))
  },
}

async function statusOf(url: string, method: string, headers: Record<string, string>): Promise<number | undefined> {
  const request = http.request(url, { method, headers, agent: false })
  request.end()
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  request.destroy()
  return response.statusCode
}

async function postChunkless(url: string, size: number) {
  const request = http.request(url, { method: 'POST', agent: false, headers: { 'content-length': size } })
  request.on('error', () => undefined).end(Buffer.alloc(size))
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  let text = ''
  for await (const piece of response) text += String(piece)
  return { status: response.statusCode, text }
}

const sockets: Readonly<Record<string, (t: Test, driver: Driver) => Promise<void>>> = {
  'an accepted upgrade is a socket of texts; the decision saw URL, headers and peer': async (t, driver) => {
    const seen: unknown[] = []
    const heard = echo()
    const { socketUrl, url } = await serve(t, driver, {
      sockets: {
        '/socket': {
          ...heard.route,
          upgrade(request, info) {
            seen.push([request.url, request.headers.get('origin'), info.remoteAddress])
            return heard.route.upgrade(request, info)
          },
        },
      },
    })
    const socket = await connect(t, `${socketUrl}/socket?token=a`, { origin: 'https://app.example.com' })
    t.same(seen, [[`${url}/socket?token=a`, 'https://app.example.com', '127.0.0.1']])
    for (const text of ['one', 'zwei — ✓', '']) {
      socket.send(text)
      const [message, isBinary] = (await once(socket, 'message')) as [Buffer, boolean]
      t.equal(message.toString(), text)
      t.equal(isBinary, false)
    }
    socket.close(4001, 'enough')
    t.equal(await heard.closed, 4001)
  },

  'a refused upgrade is answered with the response of the decision': async (t, driver) => {
    const refused = async (): Promise<SocketDecision> => ({
      accept: false,
      response: json({ type: 'UNAUTHORIZED' }, 401),
    })
    const { socketUrl } = await serve(t, driver, { sockets: { '/socket': { ...echo().route, upgrade: refused } } })
    t.same(await refusal(`${socketUrl}/socket`), [401, '{"type":"UNAUTHORIZED"}'])
  },

  'a path without sockets, a plain GET and a handshake that is none are answered by the application': async (
    t,
    driver,
  ) => {
    let decisions = 0
    const upgrade = async (): Promise<SocketDecision> => {
      decisions++
      return { accept: false, response: json({}, 401) }
    }
    const { socketUrl, url } = await serve(t, driver, { sockets: { '/socket': { ...echo().route, upgrade } } })
    t.same(await refusal(`${socketUrl}/other`), [404, '{"type":"NOT_FOUND","path":"/other"}'])
    t.same(await refusal(`${socketUrl}/socket/`), [404, '{"type":"NOT_FOUND","path":"/socket/"}'])
    t.equal((await get(`${url}/socket`)).status, 404)
    const handshake = { connection: 'Upgrade', upgrade: 'websocket' }
    const key = `${'A'.repeat(22)}==`
    const ask = (headers: Record<string, string>) => statusOf(`${url}/socket`, 'GET', { ...handshake, ...headers })
    t.equal(await ask({ 'sec-websocket-version': '8', 'sec-websocket-key': key }), 404)
    t.equal(await ask({ 'sec-websocket-version': '13' }), 404)
    t.equal(await ask({ 'sec-websocket-version': '13', 'sec-websocket-key': 'A'.repeat(24) }), 404)
    t.equal(await statusOf(url, 'POST', { connection: 'Upgrade', upgrade: 'h2c', 'content-length': '0' }), 404)
    t.equal(decisions, 0)
  },

  'a client that leaves before the decision does no harm: its socket opens and is closed with 1006': async (
    t,
    driver,
  ) => {
    const asked = deferred<void>()
    const decide = deferred<void>()
    const heard = echo()
    const { port, url } = await serve(t, driver, {
      fetch: async () => new Response('still here'),
      sockets: {
        '/socket': {
          ...heard.route,
          async upgrade(request, info) {
            asked.resolve()
            await decide.promise
            return heard.route.upgrade(request, info)
          },
        },
      },
    })
    const client = net.connect(port, '127.0.0.1')
    client.write(
      `GET /socket HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${'A'.repeat(22)}==\r\n\r\n`,
    )
    await asked.promise
    client.resetAndDestroy()
    await once(client, 'close')
    t.equal(await (await get(url)).text(), 'still here')
    decide.resolve()
    const connection = await heard.opened
    t.equal(await heard.closed, 1006)
    t.equal(connection.send('anybody?'), 'dropped')
    connection.close(1000, 'twice')
    t.equal(await (await get(url)).text(), 'still here')
    t.same(heard.closings, [1006])
  },

  'a binary frame closes the socket with 1003 before any handler': async (t, driver) => {
    const heard = echo()
    const { socketUrl } = await serve(t, driver, { sockets: { '/socket': heard.route } })
    const socket = await connect(t, `${socketUrl}/socket`)
    const closed = closeOf(socket)
    socket.send(Buffer.from('binary'))
    socket.send('too late')
    t.equal((await closed)[0], 1003)
    t.equal(await heard.closed, 1003)
    t.same([heard.texts, heard.closings], [[], [1003]])
  },

  'a text over the limit closes the socket with 1009, one at the limit does not': async (t, driver) => {
    const heard = echo({ maxFrameBytes: 1000 })
    const { socketUrl } = await serve(t, driver, { sockets: { '/socket': heard.route } })
    const socket = await connect(t, `${socketUrl}/socket`)
    socket.send('x'.repeat(1000))
    t.equal(String((await once(socket, 'message'))[0]).length, 1000)
    const closed = closeOf(socket)
    socket.send('x'.repeat(1001))
    t.equal((await closed)[0], 1009)
    t.equal(await heard.closed, 1009)
    t.equal(heard.texts.length, 1)

    const second = echo({ maxFrameBytes: 1000 })
    const other = await serve(t, driver, { sockets: { '/socket': second.route } })
    const huge = await connect(t, `${other.socketUrl}/socket`)
    const over = closeOf(huge)
    huge.send('x'.repeat(10_000_000))
    const code = (await over)[0]
    t.ok(code === 1009 || (driver === 'uws' && code === 1006), 'uws cuts a frame far over the limit at its first bytes')
    t.equal(await second.closed, 1009)
  },

  'a text that is not UTF-8 closes the socket': async (t, driver) => {
    const heard = echo()
    const { socketUrl } = await serve(t, driver, { sockets: { '/socket': heard.route } })
    const socket = await connect(t, `${socketUrl}/socket`)
    const closed = closeOf(socket)
    socket.send(Buffer.from([0xff, 0xfe]), { binary: false })
    t.ok([1006, 1007].includes((await closed)[0]))
    t.ok([1006, 1007].includes(await heard.closed))
    t.same(heard.texts, [])
  },

  'what waits for a slow reader is bounded: past it the message is dropped and the socket closed with 1013': async (
    t,
    driver,
  ) => {
    const heard = echo()
    const { socketUrl } = await serve(t, driver, { sockets: { '/socket': heard.route } })
    const socket = await connect(t, `${socketUrl}/socket`)
    socket.pause()
    const connection = await heard.opened
    const text = 'x'.repeat(64 * 1024)
    let sent = 0
    while (sent < 10_000 && connection.send(text) === 'sent') sent++
    t.ok(sent < 10_000, `${sent} messages before it was full`)
    t.equal(connection.send('x'), 'dropped')
    t.equal(await heard.closed, 1013)
    t.same(heard.closings, [1013])
  },

  'connection.close tells the client code and reason; afterwards nothing is sent or heard': async (t, driver) => {
    const heard = echo()
    const { socketUrl } = await serve(t, driver, { sockets: { '/socket': heard.route } })
    const socket = await connect(t, `${socketUrl}/socket`)
    const closed = closeOf(socket)
    const connection = await heard.opened
    t.equal(connection.send('last words'), 'sent')
    connection.close(4000, 'call ended')
    connection.close(4002, 'again')
    t.equal(connection.send('more'), 'dropped')
    t.same(heard.closings, [], 'never from within close')
    socket.send('too late')
    t.same(await closed, [4000, 'call ended'])
    t.equal(await heard.closed, 4000)
    t.same([heard.texts, heard.closings], [[], [4000]])
  },

  'a socket may be closed while it opens': async (t, driver) => {
    const closings: number[] = []
    const upgrade = async (): Promise<SocketDecision> => ({
      accept: true,
      open(connection) {
        connection.send('hello')
        connection.close(4003, 'no')
        return { message: () => undefined, closed: (code) => void closings.push(code) }
      },
    })
    const { socketUrl } = await serve(t, driver, { sockets: { '/socket': { ...echo().route, upgrade } } })
    const socket = new WebSocket(`${socketUrl}/socket`)
    t.same(await closeOf(socket), [4003, 'no'])
    t.same(closings, [4003])
  },

  'a socket that is to say something first is closed with 1008 when it does not in time; any text will do': async (
    t,
    driver,
  ) => {
    const [talking, silent] = [echo(), echo()]
    const hurried = ({ route }: Heard): SocketRoute => ({
      ...route,
      upgrade: async (request, info) => ({ ...(await route.upgrade(request, info)), firstMessageWithin: 200 }) as never,
    })
    const { socketUrl } = await serve(t, driver, {
      sockets: { '/talking': hurried(talking), '/silent': hurried(silent) },
    })
    const socket = await connect(t, `${socketUrl}/talking`)
    socket.send('here I am')
    t.same(await closeOf(await connect(t, `${socketUrl}/silent`)), [1008, 'no message'])
    t.equal(await silent.closed, 1008)
    t.same([socket.readyState, talking.closings], [WebSocket.OPEN, []])
  },

  'a client whose connection breaks is closed with 1006': async (t, driver) => {
    const heard = echo()
    const { socketUrl } = await serve(t, driver, { sockets: { '/socket': heard.route } })
    const socket = await connect(t, `${socketUrl}/socket`)
    socket.terminate()
    t.equal(await heard.closed, 1006)
  },

  'a silent socket is pinged and stays while it answers; one that does not answer is closed with 1006': async (
    t,
    driver,
  ) => {
    const [lively, dead] = [echo(), echo()]
    const { socketUrl } = await serve(t, driver, {
      pingInterval: 40,
      sockets: { '/lively': lively.route, '/dead': dead.route },
    })
    const socket = await connect(t, `${socketUrl}/lively`)
    const pings: Promise<unknown>[] = []
    for (let count = 0; count < 3; count++) pings.push(once(socket, 'ping'))
    await connect(t, `${socketUrl}/dead`, { autoPong: false })
    t.equal(await dead.closed, 1006)
    await Promise.all(pings)
    for (let count = 0; count < 3; count++) await once(socket, 'ping')
    socket.send('still here')
    t.equal(String((await once(socket, 'message'))[0]), 'still here')
    t.same(lively.closings, [])
  },
}

const endings: Readonly<Record<string, (t: Test, driver: Driver) => Promise<void>>> = {
  'close stops accepting at once and lets a running request finish': async (t, driver) => {
    const asked = deferred<void>()
    const finish = deferred<Response>()
    const { url, close, port } = await serve(t, driver, {
      fetch: () => {
        asked.resolve()
        return finish.promise
      },
    })
    const running = fetch(url)
    await asked.promise
    const closed = close(60_000)
    t.equal(close(60_000), closed, 'idempotent')
    const [error] = (await once(net.connect(port, '127.0.0.1'), 'error')) as [NodeJS.ErrnoException]
    t.equal(error.code, 'ECONNREFUSED')
    finish.resolve(new Response('finished'))
    const response = await running
    t.equal(response.headers.get('connection'), 'close')
    t.equal(await response.text(), 'finished')
    await closed
  },

  'close ends sockets with 1001 and cuts what is left after the grace time': async (t, driver) => {
    const asked = deferred<Request>()
    const heard = echo()
    const { url, socketUrl, close } = await serve(t, driver, {
      sockets: { '/socket': heard.route },
      fetch: (request) => {
        asked.resolve(request)
        return new Promise(() => undefined)
      },
    })
    const socket = await connect(t, `${socketUrl}/socket`)
    const closing = closeOf(socket)
    const idle = net.connect(Number(new URL(url).port), '127.0.0.1')
    await once(idle, 'connect')
    const idleClosed = once(idle.resume(), 'close')
    const stuck = t.rejects(get(url))
    await asked.promise
    await close(30)
    t.equal((await closing)[0], 1001)
    t.equal(await heard.closed, 1001)
    await stuck
    await idleClosed
  },

  'close does not wait for a socket whose client never answers': async (t, driver) => {
    const heard = echo()
    const { socketUrl, close } = await serve(t, driver, { sockets: { '/socket': heard.route } })
    const socket = await connect(t, `${socketUrl}/socket`)
    socket.pause()
    await close(0)
    t.equal(await heard.closed, 1001)
  },
}

test('a head that does not arrive in time is dropped', async (t) => {
  const { port } = await serve(t, 'node', { requestTimeout: 200 })
  t.notMatch(await raw(port, 'GET / HTTP/1.1\r\nHost: he'), /^HTTP\/1.1 2/)
  t.notMatch(await raw(port, ''), /^HTTP\/1.1 2/)
})

test('a listener that nobody chose a driver for is node’s, also where uws loads', async (t) => {
  const listener = await listen({
    host: '127.0.0.1',
    port: 0,
    tls: null,
    maxBodyBytes,
    requestTimeout: 1_000,
    clock: systemClock,
    fetch: notFound,
    tooLarge: () => json({}, 413),
    sockets: {},
    presetVariable,
  })
  t.equal(listener.driver, 'node')
  await listener.close(0)
})

test('light headers answer and refuse like real ones, whatever is done to them', (t) => {
  const names = [
    'x-a',
    'X-A',
    '\u212A',
    'k',
    'x-b',
    'Set-Cookie',
    'set-cookie',
    'cookie',
    'Content-Type',
    'bad name',
    '',
    'x-ü',
  ]
  const values = [
    '1',
    'two words',
    ' around ',
    '',
    'a\r\nb: c',
    'line\nbreak',
    '\0',
    'é',
    '😀',
    'tab\tinside',
    '\x7f',
    5 as never,
  ]
  for (let seed = 1; seed <= 3_000; seed++) {
    const random = createRandom(seed)
    const both = [createLightHeaders([]), new Headers()] as const
    const steps: string[] = []
    for (let step = 0; step < 8; step++) {
      const kind = random.pick(['set', 'set', 'append', 'append', 'get', 'has', 'delete', 'list', 'pairs'] as const)
      const [name, value] = [random.pick(names), random.pick(values)]
      const seen = both.map((headers) => outcomeOf(() => change(headers, kind, name, value)))
      steps.push(`${kind} ${JSON.stringify([name, value])}`)
      if (seen[0] !== seen[1]) t.fail(`${seen.join(' instead of ')} with seed ${seed}: ${steps.join(', ')}`)
    }
  }
  t.pass()
  t.end()
})

function change(headers: Headers, kind: string, name: string, value: string): unknown {
  if (kind === 'set') return headers.set(name, value)
  if (kind === 'append') return headers.append(name, value)
  if (kind === 'delete') return headers.delete(name)
  if (kind === 'get') return headers.get(name)
  if (kind === 'has') return headers.has(name)
  if (kind === 'pairs') return [...pairsOf(headers)].toSorted(([a], [b]) => (a < b ? -1 : Number(a > b)))
  return [[...headers], [...headers.keys()], headers.getSetCookie()]
}

function outcomeOf(act: () => unknown): string {
  try {
    return JSON.stringify(act() ?? null)
  } catch (error) {
    return (error as Error).name
  }
}

test('light objects have every member of what they stand in for, and can be shown', async (t) => {
  const headers = [['x-a', '1']] as const
  const { signal } = new AbortController()
  const pairs: [object, object][] = [
    [createLightHeaders(headers), new Headers(headers as never)],
    [
      createLightRequest({ method: 'GET', url: 'http://here/?a', headers, signal }),
      new Request('http://here/?a', { headers: headers as never }),
    ],
    [
      createReadyResponse('', 201, { 'content-type': 'a/b' }),
      new Response('', { status: 201, headers: { 'content-type': 'a/b' } }),
    ],
  ]
  for (const [light, real] of pairs) {
    const prototype = Object.getPrototypeOf(real) as object
    for (const name of Reflect.ownKeys(prototype)) {
      const [given, wanted] = [light, real].map((object) => Reflect.get(object, name) as unknown)
      t.equal(typeof given, typeof wanted, String(name))
      if (typeof wanted !== 'object' && typeof wanted !== 'function') t.equal(given, wanted, String(name))
    }
    t.equal(inspect(light), inspect(real))
  }
})

test('a ready response is a Response in everything that can be asked of it', async (t) => {
  const make = () => createReadyResponse('{"a":"ö"}', 201, { 'content-type': 'application/json' })
  const real = () => new Response('{"a":"ö"}', { status: 201, headers: { 'content-type': 'application/json' } })
  t.ok(make() instanceof Response)
  for (const name of ['status', 'ok', 'statusText', 'type', 'url', 'redirected', 'bodyUsed'] as const)
    t.equal(make()[name], real()[name], name)
  t.same(await make().json(), { a: 'ö' })
  t.equal(await make().text(), '{"a":"ö"}')
  t.same(await make().bytes(), await real().bytes())
  t.equal((await make().arrayBuffer()).byteLength, 10)
  t.equal((await make().blob()).type, 'application/json')
  t.equal(await new Response(make().body).text(), '{"a":"ö"}')
  const read = make()
  const copy = read.clone()
  await read.text()
  t.equal(read.bodyUsed, true)
  await t.rejects(read.text(), TypeError)
  t.same([await copy.text(), copy.status, copy.headers.get('content-type')], ['{"a":"ö"}', 201, 'application/json'])
  for (const status of [100, 204, 205, 304]) {
    t.throws(() => createReadyResponse('', status, {}), TypeError)
    t.throws(() => new Response('', { status }))
  }
  const bodiless = new Response(null, make())
  t.same([bodiless.status, bodiless.headers.get('content-type')], [201, 'application/json'], 'as HEAD is answered')
})

await eachDriver({ ...requests, ...sockets, ...endings })
