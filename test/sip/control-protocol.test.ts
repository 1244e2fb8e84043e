/**
 * The control protocol: recorded conversations of unmodified drachtio-srf with the server. Each is held twice: the library must still say
 * what was recorded, and the server must answer a replay without the library as recorded. `RECORD=1` writes the files anew.
 */
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { createFrameReader, frameOf, maxFrameBytes } from '../../sip/server/control/frame-reader.ts'
import { tagOf } from '../../sip/server/message/address.ts'
import { createSipServer, type SipServerOptions } from '../../sip/server/sip-server.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { openSipApp, type Loose, type SipApp } from '../fake/sip-app.ts'
import { openSipWire, sdp, type SipWire } from '../fake/sip-wire.ts'

const secret = 'the-secret'

async function serve(t: Test, limits: SipServerOptions['limits'] = {}) {
  const log = createQuietLog()
  const listen = [{ protocol: 'udp', address: '127.0.0.1', port: 0 } as const]
  const server = await createSipServer({ listen, secret, limits, clock: systemClock, log })
  const wire = await openSipWire(server.listening[0]?.local.port ?? 0)
  t.teardown(async () => {
    await wire.close()
    await server.close()
  })
  return { server, wire, log, port: server.listening[0]?.local.port ?? 0 }
}

/** A raw end of the control protocol. */
async function connectRaw(t: Test, port: number) {
  const socket = net.connect(port, '127.0.0.1')
  const frames: string[] = []
  let wake = (): void => undefined
  const reader = createFrameReader((frame) => {
    frames.push(frame.toString())
    wake()
  })
  socket.on('data', (piece) => reader.push(piece))
  socket.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return {
    socket,
    closed,
    send: (text: string): void => void socket.write(frameOf(text)),
    async next(): Promise<string> {
      while (frames.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      return frames.shift() ?? ''
    },
  }
}

// ——— Recorded conversations ———

/** `app` and `server` are frames, `peer` is what the peer sends on the network. In the order in which they came. */
type Line = { readonly from: 'app' | 'server' | 'peer'; readonly text: string }
type Stage = { readonly app: SipApp; readonly wire: SipWire }

const event = (emitter: Loose, name: string): Promise<Loose[]> =>
  new Promise((resolve) => emitter.once(name, (...args: Loose[]) => resolve(args)))

const conversations: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  async connect() {},

  async 'incoming-call'({ app, wire }) {
    wire.ask('INVITE', { callId: 'incoming', fromTag: 'caller', cseq: 1, body: sdp() })
    const { req, res } = await app.next('invite')
    res.send(180)
    await wire.response('1 INVITE', 180)
    const dialog = await app.srf.createUAS(req, res, { localSdp: sdp(50_000) })
    const answer = await wire.response('1 INVITE', 200)
    const call = { callId: 'incoming', fromTag: 'caller', toTag: tagOf(answer, 'To') ?? '' }
    const acked = event(dialog, 'ack')
    wire.ask('ACK', { ...call, cseq: 1 })
    await acked
    dialog.on('info', (_: Loose, reply: Loose) => reply.send(200))
    wire.ask('INFO', { ...call, cseq: 2 })
    await wire.response('2 INFO')
    wire.ask('BYE', { ...call, cseq: 3 })
    await wire.response('3 BYE')
  },

  async 'outgoing-call'({ app, wire }) {
    const headers = { From: '<sip:15550100@localhost>', 'X-Own': 'yes' }
    const calling = app.srf.createUAC(wire.uri, { localSdp: sdp(50_000), headers })
    const invite = await wire.request('INVITE')
    wire.answer(invite, 200, 'callee', [], sdp())
    const dialog = await calling
    await wire.request('ACK')
    const changing = dialog.modify(sdp(50_002, 2))
    wire.answer(await wire.request('INVITE'), 200, undefined, [], sdp())
    await changing
    await wire.request('ACK')
    const ending = dialog.destroy()
    wire.answer(await wire.request('BYE'), 200)
    await ending
  },

  async 'canceled-call'({ app, wire }) {
    const { promise, resolve } = Promise.withResolvers<Loose>()
    const told = { cbRequest: (_: Loose, req: Loose) => resolve(req) }
    const calling = app.srf.createUAC(wire.uri, { localSdp: sdp(50_000) }, told).catch(() => undefined)
    const invite = await wire.request('INVITE')
    const sent = await promise
    const rings = event(sent, 'response')
    wire.answer(invite, 180, 'callee')
    await rings
    sent.cancel()
    wire.answer(await wire.request('CANCEL'), 200, 'callee')
    wire.answer(invite, 487, 'callee')
    await calling
  },

  async 'caller-gave-up'({ app, wire }) {
    const branch = wire.ask('INVITE', { callId: 'hopeless', fromTag: 'caller', cseq: 1, body: sdp() })
    const { req, res } = await app.next('invite')
    const canceled = event(req, 'cancel')
    wire.ask('CANCEL', { callId: 'hopeless', fromTag: 'caller', cseq: 1, branch })
    await canceled
    res.send(486)
  },

  async registration({ app, wire }) {
    const headers = { Contact: '<sip:line@localhost>', From: '<sip:line@127.0.0.1>' }
    const auth = { username: 'line', password: 'secret' }
    const req = await app.srf.request(wire.uri, { method: 'REGISTER', headers, auth })
    const done = event(req, 'response')
    const challenge = ['WWW-Authenticate: Digest realm="r", nonce="n"']
    wire.answer(await wire.request('REGISTER'), 401, 'registrar', challenge)
    wire.answer(await wire.request('REGISTER'), 200, 'registrar')
    await done
  },
}

const fileOf = (name: string): URL => new URL(`control-frames/${name}.txt`, import.meta.url)

/** What differs from one time to the next is named, each by the kind it is of and when it first appeared. */
const volatile = (port: number, peer: number): readonly (readonly [kind: string, shape: RegExp])[] => [
  ['server', new RegExp(`(?<=[|:])${port}(?!\\d)`, 'g')],
  ['peer', new RegExp(`(?<=[|:=w])${peer}(?!\\d)`, 'g')],
  ['id', /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g],
  ['time', /\d\d:\d\d:\d\d\.\d{6}/g],
  ['branch', /(?<=branch=)z9hG4bK[\w{}]+/g],
  ['tag', /(?<=tag=)[0-9a-f]{16}/g],
  ['number', /(?<=^cseq: )\d{3,5}(?= )/gim],
  ['bytes', /(?<=\|application\||\|network\|)\d+(?=\|)/g],
  ['response', /(?<=response=")[0-9a-f]{32}/g],
]

function named(lines: readonly Line[], port: number, peer: number): Line[] {
  const names = new Map<string, string>()
  const counts = new Map<string, number>()
  const nameOf = (kind: string, value: string): string => {
    const key = `${kind} ${value}`
    if (!names.has(key)) {
      counts.set(kind, (counts.get(kind) ?? 0) + 1)
      names.set(key, `{${kind}${counts.get(kind)}}`)
    }
    return names.get(key) ?? ''
  }
  const shapes = volatile(port, peer)
  return lines.map(({ from, text }) => ({
    from,
    text: shapes.reduce((left, [kind, shape]) => left.replace(shape, (value) => nameOf(kind, value)), text),
  }))
}

/** The peer may answer before the app has read what was sent for it; in a replay it answers behind that. */
function inOrder(lines: readonly Line[]): Line[] {
  const ordered = lines.filter(({ from, text }) => from !== 'peer' || !text.startsWith('SIP/2.0'))
  for (const [at, line] of lines.entries()) {
    if (ordered.includes(line)) continue
    const branch = /branch=[^;\r]+/.exec(line.text)?.[0] ?? ''
    const shown = ordered.findIndex(({ from, text }) => from === 'server' && text.includes(branch))
    const before = lines.slice(0, at).findLastIndex((earlier) => ordered.includes(earlier))
    ordered.splice(Math.max(shown, ordered.indexOf(lines[before] as Line)) + 1, 0, line)
  }
  return ordered
}

const separator = '\n=====\n'
const toFile = (lines: readonly Line[]): string =>
  `${lines.map(({ from, text }) => `${from}\n${text.replaceAll('\r\n', '\n')}`).join(separator)}\n`

function readConversation(name: string): Line[] {
  const text = readFileSync(fileOf(name), 'utf8').slice(0, -1)
  return text.split(separator).map((part) => {
    const end = part.indexOf('\n')
    return { from: part.slice(0, end) as Line['from'], text: part.slice(end + 1).replaceAll('\n', '\r\n') }
  })
}

/** Between an app and the server; tells of every frame. */
async function openTap(t: Test, port: number, heard: (line: Line) => void): Promise<number> {
  const tap = net.createServer((socket) => {
    const server = net.connect(port, '127.0.0.1')
    const fromApp = createFrameReader((frame) => heard({ from: 'app', text: frame.toString() }))
    const fromServer = createFrameReader((frame) => heard({ from: 'server', text: frame.toString() }))
    socket.on('data', (piece) => server.write((fromApp.push(piece), piece)))
    server.on('data', (piece) => socket.write((fromServer.push(piece), piece)))
    for (const [one, other] of [[socket, server] as const, [server, socket] as const]) {
      one.on('close', () => other.destroy())
      one.on('error', () => other.destroy())
    }
  })
  tap.listen(0, '127.0.0.1')
  await once(tap, 'listening')
  t.teardown(() => void tap.close())
  return (tap.address() as net.AddressInfo).port
}

const frames = (lines: readonly Line[], from: Line['from']): string[] =>
  lines.filter((line) => line.from === from).map(({ text }) => text)

test('drachtio-srf says what was recorded, and is answered so', async (t) => {
  for (const [name, play] of Object.entries(conversations))
    await t.test(name, async (t) => {
      const { server, wire, port } = await serve(t)
      const lines: Line[] = []
      let wake = (): void => undefined
      const heard = (line: Line): void => {
        lines.push(line)
        wake()
      }
      const tap = await openTap(t, server.control.port, heard)
      const app = await openSipApp({ host: '127.0.0.1', port: tap, secret }, ['invite'])
      const before = name === 'connect' ? 0 : lines.length
      wire.tell((text) => heard({ from: 'peer', text }))
      await play({ app, wire })
      const isRecording = process.env['RECORD'] === '1' || !existsSync(fileOf(name))
      const wanted = isRecording ? null : readConversation(name)
      const count = (): number => lines.slice(before).filter(({ from }) => from !== 'peer').length
      // What comes last is known from the recording; without one there is nothing but to wait a while.
      if (!wanted) await new Promise((resolve) => setTimeout(resolve, 300))
      while (wanted && count() < wanted.filter(({ from }) => from !== 'peer').length)
        await new Promise<void>((resolve) => (wake = resolve))
      await app.close()
      const said = named(inOrder(lines.slice(before)), port, wire.port)
      if (isRecording) writeFileSync(fileOf(name), toFile(said))
      const expected = readConversation(name)
      t.same(frames(said, 'app').map(unordered), frames(expected, 'app').map(unordered), 'the app')
      t.same(frames(said, 'server').map(unordered), frames(expected, 'server').map(unordered), 'the server')
    })
})

/** Which number a name got depends on the order of the directions. */
const unordered = (text: string): string => text.replace(/\{(\w+?)\d+\}/g, '{$1}')

test('the server answers a replay of the recorded frames without drachtio-srf', async (t) => {
  for (const name of Object.keys(conversations))
    await t.test(name, async (t) => {
      const { server, wire, port } = await serve(t)
      const raw = await connectRaw(t, server.control.port)
      const values = new Map([
        ['{server1}', String(port)],
        ['{peer1}', String(wire.port)],
      ])
      if (name !== 'connect') await beReady(raw)
      const random = createRandom(name.length)
      const filled = (text: string): string =>
        text.replace(/\{(\w+?)\d+\}/g, (placeholder, kind: string) => {
          if (!values.has(placeholder)) values.set(placeholder, fresh(kind, random.below))
          return values.get(placeholder) ?? ''
        })
      let checked = 0
      for (const { from, text } of readConversation(name)) {
        if (from === 'app') raw.send(filled(text))
        else if (from === 'peer') wire.sendRaw(filled(text))
        else {
          const frame = await raw.next()
          const mismatch = bind(text, frame, values)
          if (mismatch) t.fail(`${mismatch}\n${frame}`)
          checked += 1
        }
      }
      t.ok(checked > 0, `${checked} frames are as recorded`)
    })
})

async function beReady(raw: Awaited<ReturnType<typeof connectRaw>>): Promise<void> {
  raw.send(`a|authenticate|${secret}|`)
  raw.send('b|route|invite')
  await raw.next()
  await raw.next()
}

const fresh = (kind: string, below: (limit: number) => number): string =>
  kind === 'branch'
    ? `z9hG4bK${below(1e9)}`
    : kind === 'number'
      ? String(1000 + below(8000))
      : `made-${kind}-${below(1e9)}`

/** Null: the frame is the recorded one, and what its names stand for is known from here on. */
function bind(recorded: string, frame: string, values: Map<string, string>): string | null {
  const placeholders: string[] = []
  const shape = recorded.replace(/[.*+?^$()|[\]\\/]/g, '\\$&').replace(/\{\w+?\d+\}/g, (placeholder) => {
    const known = values.get(placeholder)
    // Recorded lengths count what had other ports in it.
    if (known !== undefined && !placeholder.startsWith('{bytes') && !placeholder.startsWith('{time'))
      return known.replace(/[.*+?^$()|[\]\\/{}]/g, '\\$&')
    placeholders.push(placeholder)
    return '([^|;,\\s"]+?)'
  })
  const found = new RegExp(`^${shape}$`).exec(frame)
  if (!found) return `not as recorded: ${recorded.split('\r\n')[0]}`
  placeholders.forEach((placeholder, index) => values.set(placeholder, found[index + 1] ?? ''))
  const [, bytes] = /\|(?:application|network)\|(\d+)\|/.exec(frame) ?? []
  const message = frame.slice(frame.indexOf('\r\n') + 2)
  if (bytes !== undefined && Number(bytes) !== Buffer.byteLength(message)) return `says ${bytes} bytes`
  return null
}

// ——— What the recordings do not show ———

test('who connects must prove the secret first', async (t) => {
  const { server } = await serve(t, { authenticateWithin: 300 })
  const { port } = server.control

  const wrong = await connectRaw(t, port)
  wrong.send('a|authenticate|another|')
  t.match(await wrong.next(), /\|response\|a\|NO\|incorrect secret$/)
  await wrong.closed

  for (const command of ['ping', 'route|invite', 'sip||\r\nOPTIONS sip:x@127.0.0.1 SIP/2.0\r\n\r\n']) {
    const early = await connectRaw(t, port)
    early.send(`a|${command}`)
    early.send(`b|authenticate|${secret}|`)
    t.match(await early.next(), /\|response\|a\|NO\|/, command)
    await early.closed
  }

  const silent = await connectRaw(t, port)
  await silent.closed
  t.pass('who says nothing is cut')

  const right = await connectRaw(t, port)
  right.send(`a|authenticate|${secret}|one,two`)
  t.match(await right.next(), /\|response\|a\|OK\|udp\/127\.0\.0\.1:\d+\|v0\.9\.10\|udp\//)
  t.match(
    await openSipApp({ ...server.control, secret: 'wrong' }).catch((error: Error) => error.message),
    /authenticate/,
  )
})

test('frames', async (t) => {
  await t.test('are found however the stream is cut', (t) => {
    const random = createRandom(3)
    const texts = Array.from({ length: 200 }, (_, index) => `${index}|ping${'ä#|1'.repeat(random.below(40))}`)
    const bytes = Buffer.concat(texts.map((text) => frameOf(text)))
    for (let round = 0; round < 20; round++) {
      const found: string[] = []
      const reader = createFrameReader((frame) => found.push(frame.toString()))
      for (let at = 0; at < bytes.length;) {
        const end = at + 1 + random.below(round === 0 ? 1 : 300)
        if (!reader.push(bytes.subarray(at, end))) t.fail('taken for garbage')
        at = end
      }
      t.same(found, texts)
    }
    t.end()
  })

  await t.test('that are none, or too long, end the connection', async (t) => {
    const { server } = await serve(t)
    for (const garbage of [
      'GET / HTTP/1.1\r\n',
      '0#',
      '-1#x',
      `${maxFrameBytes + 1}#`,
      '123456',
      '5x#',
      '#',
      '7#a b|ping',
    ]) {
      const raw = await connectRaw(t, server.control.port)
      raw.socket.write(garbage)
      await raw.closed
    }
    t.equal(server.sizes().dialogs, 0)
  })
})

test('what cannot be done is answered with NOK and a reason', async (t) => {
  const { server } = await serve(t)
  const raw = await connectRaw(t, server.control.port)
  await beReady(raw)
  const request = (method: string, more = ''): string => `\r\n${method} sip:x@127.0.0.1 SIP/2.0\r\n${more}`
  const cases: readonly (readonly [command: string, reason: RegExp])[] = [
    [`sip||nobody;from-tag=x${request('INFO', '\r\n')}`, /unable to find dialog/],
    [`sip||nobody;from-tag=x${request('BYE', '\r\n')}`, /unable to find dialog/],
    [`sip||${request('ACK', '\r\n')}`, /nothing to acknowledge/],
    [`sip|nothing|${request('CANCEL', '\r\n')}`, /no INVITE to cancel/],
    ['sip|nothing|\r\nSIP/2.0 200 OK\r\n\r\n', /answered already/],
    [`sip||${request('MESSAGE', '\r\nhello')}`, /missing content-type/],
    ['sip||\r\nno message', /not a SIP message/],
    [`sip||${request('OPTIONS', 'a b: c\r\n\r\n')}`, /not a SIP message/],
    ['sip||', /not a SIP message/],
    ['proxy|x|||||||sip:a@127.0.0.1', /not supported/],
    ['dance', /unknown command/],
    ['route|x|y\nz', /OK/],
    ['route|../x', /not a verb/],
  ]
  for (const [index, [command, reason]] of cases.entries()) {
    raw.send(`n${index}|${command}`)
    const answer = await raw.next()
    t.match(answer, new RegExp(`\\|response\\|n${index}\\|(?:NOK\\||OK)`), command)
    t.match(answer, reason)
  }
  raw.send('last|ping')
  t.match(await raw.next(), /\|last\|OK\|pong$/)
})

test('an app that does not read is cut, and others go on', async (t) => {
  const { server, log } = await serve(t, { maxUnreadBytes: 100_000 })
  const deaf = await connectRaw(t, server.control.port)
  await beReady(deaf)
  deaf.socket.pause()
  const many = Buffer.concat(Array.from({ length: 20_000 }, () => frameOf('x|ping')))
  // What the system takes for both sides differs from machine to machine.
  const isCut = (): boolean => log.lines.some(({ message }) => message.startsWith('SIP app does not read'))
  while (!isCut()) {
    deaf.socket.write(many)
    await new Promise((resolve) => setImmediate(resolve))
  }
  deaf.socket.destroy()
  const well = await connectRaw(t, server.control.port)
  await beReady(well)
  t.pass('another app is served')
})

test('no more apps than allowed are taken', async (t) => {
  const { server } = await serve(t, { connections: 2 })
  const kept = [await connectRaw(t, server.control.port), await connectRaw(t, server.control.port)]
  for (const raw of kept) await beReady(raw)
  const third = await connectRaw(t, server.control.port)
  await third.closed
  kept[0]?.send('p|ping')
  t.match(await kept[0]?.next(), /pong/)
})
