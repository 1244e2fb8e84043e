/**
 * What the browser SDK concludes by itself, without a browser: what the agent does, how good the sound is, in which order lines stand, how a socket is
 * come back to. And its package.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import type { Duplex } from 'node:stream'
import { promisify } from 'node:util'
import { test, type Test } from 'tap'
import { WebSocketServer, type WebSocket } from 'ws'
import { until } from '../scenes/in-time.ts'
import type { AgentState, Level, QualityRating, TranscriptLine } from '../../sdk/types/parley-client.d.ts'

const folder = path.resolve(import.meta.dirname, '../../sdk')
/** Plain JavaScript, whose types are in comments. */
const part = async <Part>(name: string): Promise<Part> => (await import(path.join(folder, name))) as Part

type Agent = { level(level: Level): void; line(line: TranscriptLine): void; interrupted(): void; rest(): void }
type AgentPart = {
  createAgentState(deps: { now: () => number; changed: (state: AgentState) => void }): Agent
}
type QualityPart = {
  ratingOf(numbers: {
    lossIn: number
    lossOut: number | null
    jitterMs: number
    roundTripMs: number | null
  }): QualityRating
}
type EventsPart = { withLine(lines: readonly TranscriptLine[], line: TranscriptLine): readonly TranscriptLine[] }

type SignalingPart = {
  createSignaling(
    options: { session: { signalingUrl: string; token: string } },
    handlers: { message(): void; lost(): void; back(): void; gaveUp(): void },
  ): { open(): void; send(message: object): void; close(): void }
}

const line = (role: 'user' | 'agent', turnIndex: number, text: string, isFinal = true): TranscriptLine => ({
  role,
  turnIndex,
  text,
  isFinal,
  ts: '2026-01-01T00:00:00.000Z',
})

test('the agent listens, thinks from the end of what was said until it is heard, and speaks over its own pauses', async (t) => {
  const { createAgentState } = await part<AgentPart>('parley-agent.js')
  let now = 0
  const seen: AgentState[] = []
  const agent = createAgentState({ now: () => now, changed: (state) => seen.push(state) })
  const goOn = (ms: number, level: Level): void => {
    for (let passed = 0; passed < ms; passed += 50, now += 50) agent.level(level)
  }
  goOn(500, { you: 0, agent: 0 })
  goOn(800, { you: 0.5, agent: 0 })
  agent.line(line('user', 0, 'A table, please.', false))
  t.same(seen, ['listening'], 'while you speak')
  goOn(600, { you: 0.01, agent: 0 })
  goOn(300, { you: 0, agent: 0.3 })
  goOn(400, { you: 0, agent: 0 })
  goOn(300, { you: 0, agent: 0.3 })
  t.same(seen, ['listening', 'thinking', 'speaking'], 'a pause between sentences is none of another kind')
  agent.interrupted()
  goOn(100, { you: 0.5, agent: 0 })
  agent.line(line('user', 1, ''))
  goOn(1000, { you: 0, agent: 0 })
  t.same(seen.slice(3), ['listening'], 'nothing that was said is nothing to think about')
  agent.line(line('user', 2, 'Hello?'))
  goOn(30_000, { you: 0, agent: 0 })
  t.same(seen.slice(4), ['thinking', 'listening'], 'it does not think for ever')
  agent.rest()
  t.same(seen.at(-1), null)
})

test('the worst of loss, jitter and round trip is how good the sound is', async (t) => {
  const { ratingOf } = await part<QualityPart>('parley-quality.js')
  const fine = { lossIn: 0, lossOut: null, jitterMs: 5, roundTripMs: 40 }
  t.equal(ratingOf(fine), 'good')
  t.equal(ratingOf({ ...fine, lossIn: 0.03 }), 'fair')
  t.equal(ratingOf({ ...fine, lossOut: 0.1 }), 'poor')
  t.equal(ratingOf({ ...fine, jitterMs: 45 }), 'fair')
  t.equal(ratingOf({ ...fine, lossIn: 0.03, roundTripMs: 900 }), 'poor')
})

test('a later text takes the place of an earlier one of its turn, and turns stand in their order', async (t) => {
  const { withLine } = await part<EventsPart>('parley-events.js')
  const told = [
    line('agent', 0, 'Hello', false),
    line('agent', 0, 'Hello there.'),
    line('agent', 2, 'In a'),
    line('user', 1, 'A table.'),
    line('agent', 2, 'In a moment.'),
  ]
  const lines = told.reduce(withLine, [] as readonly TranscriptLine[])
  t.same(
    lines.map(({ text }) => text),
    ['Hello there.', 'A table.', 'In a moment.'],
  )
  const many = Array.from({ length: 600 }, (_, index) => line('user', index, `${index}`))
  t.equal(many.reduce(withLine, [] as readonly TranscriptLine[]).length, 500, 'a long talk fills no memory')
})

/** A service that lets clients in where `holds` does not have the upgrade wait for ever: each says `ready` and keeps what comes. */
async function openService(t: Test, holds: (count: number) => boolean = () => false) {
  const { createSignaling } = await part<SignalingPart>('parley-signaling.js')
  const sockets = new WebSocketServer({ noServer: true })
  const [joined, held]: [WebSocket[], Duplex[]] = [[], []]
  const texts: string[] = []
  const server = createServer().on('upgrade', (request, socket, rest) => {
    if (holds(joined.length + held.length)) return void held.push(socket)
    sockets.handleUpgrade(request, socket, rest, (open) => {
      joined.push(open)
      open.on('message', (text: Buffer) => void texts.push(text.toString()))
      open.send(JSON.stringify({ type: 'ready', resumeToken: `resume-${joined.length}` }))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const told: string[] = []
  const tell = (what: string) => () => void told.push(what)
  const signalingUrl = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/v1/signaling`
  const signaling = createSignaling(
    { session: { signalingUrl, token: 'good' } },
    { message: tell('message'), lost: tell('lost'), back: tell('back'), gaveUp: tell('gave up') },
  )
  t.teardown(() => {
    signaling.close()
    for (const socket of [...joined.map((open) => ({ destroy: () => open.terminate() })), ...held]) socket.destroy()
    server.close()
  })
  signaling.open()
  await until(() => told.includes('message'))
  return { signaling, joined, texts, told }
}

test('of the offers that wait for a lost socket the last one is sent: each of them would be answered', async (t) => {
  const { signaling, joined, texts, told } = await openService(t)
  joined[0]?.terminate()
  await until(() => told.includes('lost'))
  const offer = (sdp: string) => signaling.send({ type: 'offer', sdp })
  offer('first')
  signaling.send({ type: 'candidate', candidate: { candidate: 'of the first' } })
  signaling.send({ type: 'text', text: 'Hello?' })
  offer('second')
  signaling.send({ type: 'candidate', candidate: null })
  await until(() => texts.length === 3)
  t.same(
    texts.map((text) => JSON.parse(text) as unknown),
    [
      { type: 'text', text: 'Hello?' },
      { type: 'offer', sdp: 'second' },
      { type: 'candidate', candidate: null },
    ],
  )
})

test('a socket that is opened to come back, and that nobody answers, does not keep the call from the next try', async (t) => {
  const { joined, told } = await openService(t, (count) => count === 1)
  joined[0]?.terminate()
  await until(() => told.includes('back'))
  t.equal(joined.length, 2)
  t.same(told, ['message', 'lost', 'back', 'message'])
})

test('npm packs every module with its types, and nothing else', async (t) => {
  const packed = await promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: folder })
  const [told] = JSON.parse(packed.stdout) as { name: string; files: { path: string }[] }[]
  const modules = readdirSync(folder).filter((name) => name.endsWith('.js'))
  t.equal(told?.name, 'parley-client')
  t.same(
    told?.files.map((file) => file.path).toSorted(),
    [...modules, 'README.md', 'package.json', 'types/parley-client.d.ts', 'types/parley-react.d.ts'].toSorted(),
  )
  for (const name of modules)
    for (const [, from] of readFileSync(path.join(folder, name), 'utf8').matchAll(
      /^(?:import|export) .*from '([^']+)'/gm,
    ))
      t.ok(from === 'react' || (from?.startsWith('./') && modules.includes(from.slice(2))), `${name} imports ${from}`)
})
