/**
 * Owns `npm run bench memory [calls] [web | sip | requests | datagrams]`: what the memory of the service does in a burst of calls and of nonsense, and after it. Each row says where
 * the memory is: objects of V8, Buffers, what the C library holds, and what lives. Settings of the C library and of V8 come from the
 * environment (MALLOC_ARENA_MAX, NODE_OPTIONS), so that they can be compared.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { forkProcess, type ForkedProcess } from './forked-process.ts'
import { placeLoadedCall, preparePackets } from './loaded-call.ts'
import type { MemoryReading } from './process-under-load.ts'
import { openRawSipCaller } from '../../tools/callers/raw-sip-caller.ts'
import { printTable } from './table.ts'

type Ready = { readonly url: string; readonly sipPort: number; readonly called: string }
type Service = ForkedProcess<Ready>
type Row = Record<string, string>

const defaultCalls = 40
const talkMs = 5_000
const rounds = 2
/** After a burst, until what is left is looked at. */
const restMs = [5_000, 15_000]
const requests = 1_500
const atOnce = 30
const maxBodyBytes = 512 * 1024
const datagrams = 20_000

export async function benchMemory(given: readonly string[]): Promise<void> {
  const calls = Number(given.find((word) => /^\d+$/.test(word)) ?? defaultCalls)
  const sections = given.filter((word) => /^[a-z]/.test(word))
  await using closing = new AsyncDisposableStack()
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  closing.defer(() => rm(dataDir, { recursive: true, force: true }))
  const service: Service = await forkProcess('process-under-load.ts', [dataDir, 'echo'], ['--expose-gc'])
  closing.defer(() => service.close())
  const rows: Row[] = []
  const note = async (when: string): Promise<void> => {
    const row = rowOf(when, await service.ask('memory'))
    rows.push(row)
    console.log(Object.values(row).join(' | '))
  }
  await note('started')
  for (const { section, name, run } of burstsOf(service, calls)) {
    if (sections.length > 0 && !sections.includes(section)) continue
    for (let round = 1; round <= rounds; round++) {
      await run()
      await note(`${name}, ${round}`)
    }
    for (const [at, ms] of restMs.entries()) {
      await pause(ms - (restMs[at - 1] ?? 0))
      await note(`${ms / 1_000} s later`)
    }
  }
  await service.ask('collect')
  await note('collected')
  await pause(5_000)
  await note('5 s later')
  printTable(rows)
}

function burstsOf(service: Service, calls: number) {
  return [
    { section: 'web', name: `${calls} web calls`, run: () => talkByWeb(service, calls) },
    { section: 'sip', name: `${4 * calls} phone calls`, run: () => talkByPhone(service, 4 * calls) },
    { section: 'requests', name: `${requests} requests of nonsense`, run: () => sendNonsense(service) },
    { section: 'datagrams', name: `${datagrams} datagrams of nonsense`, run: () => sendDatagrams(service) },
  ]
}

async function talkByWeb({ ready }: Service, count: number): Promise<void> {
  const ticker = createTicker({ now: () => performance.now(), after })
  const opus = createOpusLibrary()
  const placed = { url: ready.url, opus, ticker, measures: false, packets: preparePackets(opus).talk }
  const calls: Awaited<ReturnType<typeof placeLoadedCall>>[] = []
  for (let placing = 0; placing < count; placing += 4)
    calls.push(...(await allThatCome([0, 1, 2, 3].map(() => placeLoadedCall(placed)))))
  await pause(talkMs)
  await Promise.all(calls.map((call) => call.end()))
  ticker.close()
}

async function talkByPhone({ ready }: Service, count: number): Promise<void> {
  const caller = await openRawSipCaller({ port: ready.sipPort, called: ready.called, calling: '+12025550150' })
  const calls: Awaited<ReturnType<typeof caller.call>>[] = []
  // Nobody listens on that port.
  for (let placing = 0; placing < count; placing += 4)
    calls.push(...(await allThatCome([0, 1, 2, 3].map(() => caller.call(1_999)))))
  await pause(talkMs)
  await Promise.all(calls.map((call) => call.hangUp()))
  await caller.close()
}

/** On a machine that is busy with something else one or another does not. */
async function allThatCome<Call>(calls: readonly Promise<Call>[]): Promise<Call[]> {
  return (await Promise.allSettled(calls)).flatMap((call) => (call.status === 'fulfilled' ? [call.value] : []))
}

/** Bodies that no route takes, and some that are cut. */
async function sendNonsense({ ready }: Service): Promise<void> {
  const paths = ['/v1/accounts/none/web-calls', '/v1/accounts/none/phone-calls', '/demo/session', '/nowhere']
  const one = async (at: number): Promise<void> => {
    const signal = at % 10 === 0 ? AbortSignal.timeout(20) : null
    const body = randomBytes(Math.floor((maxBodyBytes * (at % 64)) / 64))
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${ready.url}${paths[at % paths.length]}`, { method: 'POST', headers, body, signal })
    await answer.arrayBuffer()
  }
  for (let at = 0; at < requests; at += atOnce)
    await Promise.allSettled(Array.from({ length: atOnce }, (_, more) => one(at + more)))
}

async function sendDatagrams({ ready }: Service): Promise<void> {
  const socket = await bindUdp('127.0.0.1', 0)
  const invite = `INVITE sip:${ready.called}@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK`
  for (let sent = 0; sent < datagrams; sent++) {
    const rest = randomBytes(sent % 1_200)
    socket.send(
      sent % 2 === 0 ? rest : Buffer.concat([Buffer.from(`${invite}${sent}\r\n`), rest]),
      ready.sipPort,
      '127.0.0.1',
    )
    if (sent % 100 === 0) await pause(5)
  }
  await closeUdp(socket)
}

function rowOf(when: string, { rssBytes, memory, fileDescriptors, legs, running, threadCount }: MemoryReading): Row {
  const mb = (bytes: number): string => (bytes / 1e6).toFixed(0)
  return {
    when,
    'RSS MB': mb(rssBytes),
    'V8 heap used / held': `${mb(memory.heapUsed)} / ${mb(memory.heapHeld)}`,
    Buffers: mb(memory.arrayBuffers),
    'C library: heap / arenas': `${mb(memory.mainHeap)} / ${mb(memory.arenas)}`,
    'files and code': mb(memory.files),
    other: mb(memory.other),
    'legs / calls / descriptors / threads': `${legs} / ${running} / ${fileDescriptors} / ${threadCount}`,
  }
}

function after(ms: number, action: () => void): () => void {
  const timer = setTimeout(action, ms)
  return () => clearTimeout(timer)
}
