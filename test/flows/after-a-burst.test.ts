/** What a burst leaves behind: of calls, and of nonsense from strangers, on the whole service. Counts of what lives; megabytes are the bench's. */
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test, type Test } from 'tap'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'
import type { WebCallSession } from '../../model/web-call.ts'
import { placeWebCall } from '../../tools/callers/web-caller.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { openRawSipCaller } from '../../tools/callers/raw-sip-caller.ts'
import { until } from '../scenes/in-time.ts'
import { openPhoneStage, type PhoneStage, type ServedLine } from '../scenes/phone-stage.ts'

const mb = 1024 * 1024
/** Caches that fill, code that is compiled; a call that stayed would be a megabyte of sound. */
const heapBound = 24 * mb
const [phoneCalls, webCalls] = [40, 8]

type Place = { readonly t: Test; readonly stage: PhoneStage; readonly line: ServedLine }

test('after a burst of calls and nonsense nothing of it lives any more', { timeout: 120_000 }, async (t) => {
  // All of the burst is to be taken, on a busy machine too.
  const settings = { LOAD_GATE: 'off', RATE_LIMIT_PER_ADDRESS: '0', RATE_LIMIT_PER_ACCOUNT: '0', BAN_AFTER: '0' }
  const stage = await openPhoneStage(t, createHearingEngine({ tone: null }), { settings })
  const place = { t, stage, line: await stage.addLine({ events: false }) }
  const { service } = stage
  // What is opened once is there before anything is counted.
  await burst(place)
  await over(place)
  const before = { descriptors: descriptors(), heap: heapLeft() }
  await burst(place)
  t.ok(service.running() + service.legs() > 0)
  await over(place)
  t.same([service.running(), service.legs()], [0, 0], 'no actor and no leg')
  t.ok(descriptors() <= before.descriptors + 5, `descriptors ${before.descriptors} → ${descriptors()}`)
  const grown = heapLeft() - before.heap
  t.ok(grown < heapBound, `${(grown / mb).toFixed(1)} MB more are held`)
})

async function burst(place: Place): Promise<void> {
  const ends = await Promise.all([callByPhone(place), callByWeb(place), sendNonsense(place)])
  await Promise.all(ends.map((end) => end()))
}

async function callByPhone({ t, stage: { port }, line }: Place) {
  const caller = await openRawSipCaller({ port, called: line.number, calling: '+12025550150' })
  t.teardown(() => caller.close())
  // Nobody listens on that port.
  const calls = await Promise.all(Array.from({ length: phoneCalls }, () => caller.call(1_999)))
  return async () => {
    await Promise.all(calls.map((call) => call.hangUp()))
    await caller.close()
  }
}

async function callByWeb({ stage, line }: Place) {
  const one = async () => {
    const session = (await stage.rest('POST', '/web-calls', { workerId: line.workerId })) as unknown as WebCallSession
    const createCaller = () => createWeriftCaller({ codecs: ['opus'] })
    const call = await placeWebCall({ ...session, createCaller, onMessage: () => undefined })
    await call.caller.connected
    return call
  }
  const calls = await Promise.all(Array.from({ length: webCalls }, one))
  return async () => void (await Promise.all(calls.map((call) => call.hangUp())))
}

async function sendNonsense({ stage: { service, port } }: Place) {
  const socket = await bindUdp('127.0.0.1', 0)
  for (let sent = 0; sent < 500; sent++) socket.send(randomBytes(sent), port, '127.0.0.1')
  const post = async (body: Uint8Array<ArrayBuffer>) => {
    const headers = { 'content-type': 'application/json', connection: 'close' }
    await (await fetch(`${service.url}/nowhere`, { method: 'POST', headers, body })).arrayBuffer()
  }
  await Promise.allSettled(Array.from({ length: 100 }, (_, at) => post(new Uint8Array(randomBytes(at * 5_000)))))
  return () => closeUdp(socket)
}

/** Recordings have their copies too: they are made after the call, in a thread that is there from then on. */
async function over({ stage: { service, dataDir } }: Place): Promise<void> {
  await until(() => service.running() + service.legs() === 0)
  await until(() => {
    const files = readdirSync(`${dataDir}/recordings`, { recursive: true, encoding: 'utf8' })
    const made = new Set(files.filter((file) => file.endsWith('.opus')))
    return files.filter((file) => file.endsWith('.wav')).every((file) => made.has(file.replace('.wav', '.opus')))
  })
}

const descriptors = (): number => readdirSync('/proc/self/fd').length

/** Of objects and of their Buffers, after a collection. */
function heapLeft(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as NodeJS.GCFunction
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
