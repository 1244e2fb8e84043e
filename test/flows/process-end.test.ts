/** What becomes of a running call when its process ends: killed, it leaves a recording and a call for the next process; stopped, it leaves nothing undone. */
import { execFile, fork, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { test, type Test } from 'tap'
import { replay } from '../../actors/call/machine/replay.ts'
import { newId } from '../../app/core.ts'
import type { AccountId, CallId } from '../../model/ids.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { findCall } from '../../store/calls.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { openDatabase } from '../../store/open-database.ts'
import { createSecretBox, loadAppKey, subkey } from '../../store/secret-box.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { parseWav } from '../scenes/parse-wav.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { needsTool } from '../peers/tools.ts'
import { createFolder } from '../scenes/folder.ts'
import { until } from '../scenes/in-time.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openFakeWebhookReceiver, type FakeWebhookReceiver } from '../fake/webhook-receiver.ts'
import { placeLoadedCall, preparePackets } from '../load/loaded-call.ts'

const run = promisify(execFile)
const program = path.join(import.meta.dirname, '../load/process-under-load.ts')
const talkPackets = 150

async function start(t: Pick<Test, 'teardown'>, dataDir: string): Promise<{ child: ChildProcess; url: string }> {
  const child = fork(program, [dataDir])
  t.teardown(() => child.kill('SIGKILL'))
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
  return { child, url }
}

/** A process with the service, a receiver of call.ended, and one web call that talks. */
async function setUp(t: Test) {
  const dataDir = await createFolder(t)
  const { child, url } = await start(t, dataDir)
  const receiver = await openFakeWebhookReceiver(t)
  const accountId = await subscribe(dataDir, receiver)
  const ticker = createTicker({ now: () => performance.now(), after: timer })
  t.teardown(() => ticker.close())
  const opus = createOpusLibrary()
  const { talk } = preparePackets(opus)
  const call = await placeLoadedCall({ url, opus, ticker, packets: talk, measures: false })
  await call.echoed(talkPackets)
  return { dataDir, child, url, receiver, accountId, call }
}

/** The database ends with the process that started it, so it is opened and closed again. */
async function subscribe(dataDir: string, receiver: FakeWebhookReceiver): Promise<AccountId> {
  const { sql, close } = await openDatabase({ databaseUrl: null, dataDir, log: createQuietLog() })
  const [account] = await sql<{ id: AccountId }[]>`select id from accounts`
  const accountId = account?.id as AccountId
  const box = createSecretBox(subkey(await loadAppKey({ appSecret: null, dataDir }), 'secrets'))
  const request = { eventType: 'call.ended', url: receiver.url('/ended') } as const
  const subscription = await createSubscription(sql, box, { accountId, request, newId, now: Date.now() })
  receiver.trust('/ended', subscription.signingSecret ?? '')
  await close()
  return accountId
}

/** The only call, as who has a key of its account asks for it. */
async function openAsking(dataDir: string, accountId: AccountId) {
  const { sql, close } = await openDatabase({ databaseUrl: null, dataDir, log: createQuietLog() })
  const { key } = await createApiKey(sql, { accountId, name: 'capture', newId, now: Date.now() })
  const [row] = await sql<{ id: CallId }[]>`select id from calls`
  await close()
  const callId = row?.id as CallId
  const ask = (service: string, method: string, path = '/capture', body?: object) =>
    fetch(new URL(`/v1/accounts/${accountId}/phone-calls/${callId}${path}`, service), {
      method,
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
  return { callId, ask }
}

/** Headers of packets of Opus, each with its own head of 16 bytes, IP and UDP. */
const bytesOf = (packets: number): number => 24 + packets * (16 + 28 + 12)

test(
  'a call whose process is killed with -9 keeps its recording and what was captured of it, and the next process ends it as failed, when its media ended',
  { timeout: 120_000 },
  async (t) => {
    const { dataDir, child, url, receiver, accountId, call } = await setUp(t)
    const { callId, ask } = await openAsking(dataDir, accountId)
    const file = path.join(dataDir, 'recordings', accountId, `${callId}.pcap`)
    t.equal((await ask(url, 'POST', '/capture', { rtp: 'headers' })).status, 200)
    await until(async () => (await readFile(file).catch(() => '')).length > bytesOf(40))
    child.kill('SIGKILL')
    await once(child, 'exit')
    const killedAt = Date.now()
    await call.end()

    const second = await start(t, dataDir)
    const { sql, close } = await openDatabase({ databaseUrl: null, dataDir, log: createQuietLog() })
    t.teardown(close)
    const wav = parseWav(new Uint8Array(await readFile(path.join(dataDir, 'recordings', accountId, `${callId}.wav`))))
    t.match(wav, { rateHz: 16000, channels: 2 })
    t.ok(wav.samples.length > 16000 * 2, 'more than a second of it is there')
    t.ok(
      wav.samples.some((sample) => Math.abs(sample) > 1000),
      'and it can be heard',
    )

    const ended = await receiver.next('call.ended')
    t.match(ended.data, { callId, status: 'failed', failedReason: 'internal_error', recordingAvailable: true })
    const found = await findCall(sql, accountId, callId)
    t.match(found, { outcome: 'failed', endedBy: 'service', postProcessingStatus: 'completed' })
    const late = (found?.endedAt ?? 0) - killedAt
    t.ok(late > -4_000 && late < 500, `it ended ${late} ms after it was killed`)
    const log = await listCallEvents(sql, callId)
    t.ok(
      log.some(({ epoch }) => epoch === 2),
      'the second process raised the epoch',
    )
    t.same(replay(log).differences, [])
    const admin = path.join(import.meta.dirname, '../../tools/admin/admin.ts')
    const { stdout } = await run(process.execPath, [admin, 'replay', callId], {
      env: { ...process.env, DATA_DIR: dataDir },
    })
    t.match(stdout, /effects: identical/, 'and so it does from the command line, beside the running service')
    await t.test('what was captured until then is read by others, and goes with its call', async (t) => {
      const tcpdump = needsTool(t, 'tcpdump', ['/usr/bin/tcpdump', '/usr/sbin/tcpdump'])
      if (tcpdump) {
        // It may give up the right to open what is this user's alone.
        const read = spawnSync(tcpdump, ['-nn', '-r', '-'], { input: await readFile(file), encoding: 'utf8' })
        t.ok(read.stdout.split('\n').filter((line) => / UDP, length \d+$/.test(line)).length > 40)
      }
      const copy = path.join(dataDir, 'copy.pcap')
      const env = { ...process.env, DATA_DIR: dataDir }
      const taken = await run(process.execPath, [admin, 'call', 'capture', callId, copy], { env })
      const packets = Number(/(\d+) packets of RTP/.exec(taken.stdout)?.[1])
      t.ok(packets > 40, taken.stdout)
      const answer = await ask(second.url, 'GET')
      t.ok((await readFile(copy)).equals(Buffer.from(await answer.arrayBuffer())), 'as REST gives it')
      t.equal((await ask(second.url, 'DELETE', '')).status, 204)
      t.same(await readdir(path.dirname(file)), [])
      t.equal((await ask(second.url, 'GET')).status, 404)
    })
    second.child.send('close')
    await once(second.child, 'exit')
  },
)

test(
  'a service that is stopped ends its calls in order: hung up, processed, announced, and only then gone',
  { timeout: 120_000 },
  async (t) => {
    const { dataDir, child, receiver, accountId, call } = await setUp(t)
    const exit = once(child, 'exit')
    child.send('close')
    const ended = await receiver.next('call.ended')
    t.match(ended.data, { status: 'completed', recordingAvailable: true })
    await exit
    await call.end()
    const { sql, close } = await openDatabase({ databaseUrl: null, dataDir, log: createQuietLog() })
    t.teardown(close)
    const { callId } = ended.data as { callId: CallId }
    t.match(await findCall(sql, accountId, callId), { outcome: 'completed', postProcessingStatus: 'completed' })
    t.same(await sql`select id from calls where not finished or owner is not null`, [])
    t.same(await sql`select id from nodes`, [], 'its lease is given back')
    t.same(await sql`select id from deliveries where status = 'pending'`, [])
  },
)

function timer(ms: number, action: () => void): () => void {
  const pending = setTimeout(action, ms)
  return () => clearTimeout(pending)
}
