/** A backup that is made while calls run, restored to a new folder, and the service that starts there: what it has, what it ends, and what it sends. */
import { execFile, fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { test, type Test } from 'tap'
import { newId } from '../../app/core.ts'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import type { AccountId } from '../../model/ids.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { openDatabase } from '../../store/open-database.ts'
import { createSecretBox, loadAppKey, subkey } from '../../store/secret-box.ts'
import { createSubscription } from '../../store/subscriptions.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { openFakeWebhookReceiver, type FakeWebhookReceiver } from '../fake/webhook-receiver.ts'
import { placeLoadedCall, preparePackets } from '../load/loaded-call.ts'
import { filesIn } from '../scenes/backup.ts'
import { createFolder } from '../scenes/folder.ts'
import { until } from '../scenes/in-time.ts'
import { restOf, type Rest } from '../scenes/rest-of.ts'

const run = promisify(execFile)
const program = path.join(import.meta.dirname, '../load/process-under-load.ts')
const adminProgram = path.join(import.meta.dirname, '../../tools/admin/admin.ts')
const talkPackets = 50

type Json = Record<string, unknown>

test(
  'a backup made while calls run is a service again, which ends what ran and sends nothing that was sent before',
  { timeout: 170_000 },
  async (t) => {
    const folder = await createFolder(t)
    const [source, target] = [path.join(folder, 'source'), path.join(folder, 'target')]
    const receiver = await openFakeWebhookReceiver(t)
    const first = await start(t, source)
    const own = await addClient(source, receiver)
    const asked = restOf(first.url, own.accountId, own.key)
    const place = createCaller(t, first.url)

    const before = await place()
    await before.end()
    const over = await receiver.next('call.ended')
    const [doneId] = await callsOf(asked)
    await addTurn(source, own.accountId, doneId)
    const running = await place()
    const runningId = (await callsOf(asked)).find((id) => id !== doneId)
    t.ok(runningId)

    // Broken off half-way there is nothing that could be restored.
    const broken = path.join(folder, 'broken.tar.zst')
    await breakOff(source, broken)
    t.notOk(existsSync(broken))
    const file = path.join(folder, 'backup.tar.zst')
    const { stdout: made } = await admin(source, 'backup', file)
    t.match(made, /2 calls/)
    await running.echoed(talkPackets)
    t.pass('the call talked on meanwhile')

    const recordings = await filesIn(path.join(source, 'recordings'))
    const turns = await transcriptOf(asked, doneId)
    t.match(JSON.stringify(turns), /What was said/)
    await kill(first.child)
    await running.end()
    const half = `${broken}.part`
    if (existsSync(half))
      await t.rejects(admin(target, 'restore', half), /cannot be used/, 'what was left of it is refused')
    t.notOk(existsSync(path.join(target, 'postgres')), 'before anything is made')

    const { stdout: restored } = await admin(target, 'restore', file)
    t.match(restored, /Restored: what was there at .*, 2 calls/)
    const second = await start(t, target)
    const ended = await receiver.next('call.ended')
    t.match(ended.data, { callId: runningId, status: 'failed', failedReason: 'internal_error' })
    const again = restOf(second.url, own.accountId, own.key)
    t.same(new Set(await callsOf(again)), new Set([doneId, runningId]), 'its key opens, its calls are there')
    t.same(await transcriptOf(again, doneId), turns)
    const there = await filesIn(path.join(target, 'recordings'))
    const ofDone = Object.keys(recordings).filter((name) => name.includes(String(doneId)))
    t.ok(ofDone.length > 0)
    for (const name of ofDone) t.equal(there[name], recordings[name], `${path.extname(name)} is the same`)
    const ids = receiver.deliveries
      .filter(({ type }) => type === 'call.ended')
      .map(({ data }) => (data as Json)['callId'])
    t.same(ids, [doneId, runningId], 'each end was told once')
    t.match(over.data, { callId: doneId, status: 'completed' })
    await stop(second.child)
  },
)

async function start(t: Pick<Test, 'teardown'>, dataDir: string): Promise<{ child: ChildProcess; url: string }> {
  const child = fork(program, [dataDir])
  t.teardown(() => child.kill('SIGKILL'))
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
  return { child, url }
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

async function stop(child: ChildProcess): Promise<void> {
  child.send('close')
  await once(child, 'exit')
}

const admin = (dataDir: string, ...args: readonly string[]) =>
  run(process.execPath, [adminProgram, ...args], { env: { ...process.env, DATA_DIR: dataDir } })

/** Killed as soon as something of it is on the disk. */
async function breakOff(dataDir: string, file: string): Promise<void> {
  const child = fork(adminProgram, ['backup', file], { env: { ...process.env, DATA_DIR: dataDir }, silent: true })
  const ended = once(child, 'exit')
  const name = `${path.basename(file)}.part`
  await until(async () => (await readdir(path.dirname(file))).includes(name) || child.exitCode !== null)
  child.kill('SIGKILL')
  await ended
}

/** The database ends with the process that started it: what joins it is closed. */
async function addClient(dataDir: string, receiver: FakeWebhookReceiver) {
  const { sql, close } = await openDatabase({ databaseUrl: null, dataDir, log: createQuietLog() })
  const [account] = await sql<{ id: AccountId }[]>`select id from accounts`
  const accountId = account?.id as AccountId
  const box = createSecretBox(subkey(await loadAppKey({ appSecret: null, dataDir }), 'secrets'))
  const request = { eventType: 'call.ended', url: receiver.url('/ended') } as const
  const { signingSecret } = await createSubscription(sql, box, { accountId, request, newId, now: Date.now() })
  receiver.trust('/ended', signingSecret ?? '')
  const { key } = await createApiKey(sql, { accountId, name: 'client', newId, now: Date.now() })
  await close()
  return { accountId, key }
}

/** Web calls that talk. */
function createCaller(t: Pick<Test, 'teardown'>, url: string) {
  const after = (ms: number, act: () => void) => {
    const timer = setTimeout(act, ms)
    return () => clearTimeout(timer)
  }
  const ticker = createTicker({ now: () => performance.now(), after })
  t.teardown(() => ticker.close())
  const opus = createOpusLibrary()
  const { talk: packets } = preparePackets(opus)
  return async () => {
    const call = await placeLoadedCall({ url, opus, ticker, packets, measures: false })
    await call.echoed(talkPackets)
    return call
  }
}

const transcriptOf = (rest: Rest, callId: string | undefined) => rest('GET', `/phone-calls/${callId}/transcript`)

/** The engine of the bench says nothing that could be written down. */
async function addTurn(dataDir: string, accountId: AccountId, callId: string | undefined): Promise<void> {
  const { sql, close } = await openDatabase({ databaseUrl: null, dataDir, log: createQuietLog() })
  await sql`
    insert into transcript_turns (call_id, account_id, turn_index, role, text, from_ms, to_ms)
    values (${callId ?? ''}, ${accountId}, 99, 'user', 'What was said', 0, 1)`
  await close()
}

const callsOf = async (rest: Rest): Promise<string[]> =>
  ((await rest('GET', '/phone-calls'))['data'] as { id: string }[]).map(({ id }) => id)
