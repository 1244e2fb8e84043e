/** What becomes of a recording after its call: copies, storage, removal; with a storage in trouble, and processes that die. */
import { mkdir, utimes, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'tap'
import { createApi } from '../../api/api.ts'
import { mostAttempts, pauseAfter } from '../../actors/after-call/recording-keeping.ts'
import { peaksOf } from '../../model/recording-peaks.ts'
import { partKeyOf, recordingKeyIn } from '../../model/recording-store.ts'
import { openMoodyStorage, openS3rver, type Manner } from '../fake/s3-storage.ts'
import { bytesIn, openKeeper, recordCall, soundOf, statesOf } from '../scenes/kept-recordings.ts'
import { createFolder } from '../scenes/folder.ts'
import { insertCall, openSeededApi } from '../scenes/seeded-api.ts'

const hour = 3_600_000
const forms = (callId: string) => [`${callId}.opus`, `${callId}.peaks`, `${callId}.wav`]

test('without a storage a recording stays in its folder, and its copies are made beside it', async (t) => {
  const seeded = await openSeededApi(t)
  const keeper = await openKeeper(t, seeded, null)
  const { callId, key } = await recordCall(seeded, keeper, soundOf(1))
  await keeper.keeping.idle()
  t.same(await keeper.files(), forms(callId))
  t.same(await statesOf(seeded.sql), { kept: 1 })
  t.ok(soundOf(1).equals((await bytesIn(keeper.places, key))!))
})

test('a recording is shipped after its call, byte for byte, and only then leaves the folder', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openS3rver(t)
  const keeper = await openKeeper(t, seeded, storage.settings)
  const { callId, key } = await recordCall(seeded, keeper, soundOf(1), { postProcessingStatus: 'in_progress' })
  await keeper.passes(60_000)
  t.same(await keeper.files(), [`${callId}.wav`], 'a call that is not processed yet has its recording where it was')
  await seeded.sql`update calls set post_processing_status = 'completed' where id = ${callId}`
  await keeper.passes(2_000)
  t.same(await keeper.files(), [])
  t.same(await statesOf(seeded.sql), { shipped: 1 })
  t.ok(soundOf(1).equals((await bytesIn(keeper.places, key))!))
  t.equal((await bytesIn(keeper.places, key, 'opus'))?.toString('latin1', 0, 4), 'OggS')
  t.equal((await bytesIn(keeper.places, key, 'peaks'))?.toString('latin1', 0, 4), 'PKS1')
  t.same(
    storage.asked.filter(({ flaw }) => flaw !== null),
    [],
    'the second signer found no flaw',
  )
})

test('a capture is kept and shipped with the recording of its call, and without one, and goes with it', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openS3rver(t)
  const keeper = await openKeeper(t, seeded, storage.settings)
  const capture = async (key: string) => {
    const writer = keeper.places.create(recordingKeyIn('pcap', key))
    writer.append(Buffer.from('packets'))
    await writer.close()
  }
  const both = await recordCall(seeded, keeper, soundOf(1), { postProcessingStatus: 'in_progress' })
  await capture(both.key)
  await seeded.sql`update calls set post_processing_status = 'completed' where id = ${both.callId}`
  const alone = await insertCall(seeded.sql, seeded.own.id, seeded.own.worker.id, { postProcessingStatus: 'completed' })
  const key = `${seeded.own.id}/${alone}.wav`
  await capture(key)
  await keeper.places.noted()
  await keeper.passes(4_000, 1_000)
  t.same(await keeper.files(), [], 'shipped')
  t.same(await statesOf(seeded.sql), { shipped: 2 })
  for (const one of [both.key, key]) t.equal(String(await bytesIn(keeper.places, one, 'pcap')), 'packets')
  t.equal(await bytesIn(keeper.places, key), null, 'no sound')
  for (const one of [both.key, key]) {
    t.equal(await keeper.places.remove(one), 'removed')
    t.equal(await bytesIn(keeper.places, one, 'pcap'), null)
  }
  t.same(await statesOf(seeded.sql), {})
})

test('a call that went on by another leg has one recording of all its parts: copies, link, length and removal', async (t) => {
  const seeded = await openSeededApi(t)
  const keeper = await openKeeper(t, seeded, null)
  const { callId, key } = await recordCall(seeded, keeper, soundOf(2), { postProcessingStatus: 'in_progress' })
  // The process that had the first leg was killed: it could tell nobody.
  await seeded.sql`delete from recordings`
  const writer = keeper.places.create(partKeyOf(key, 1_500))
  await keeper.places.noted()
  t.match(await keeper.places.partsOf(key), [{ key, row: null }, { key: partKeyOf(key, 1_500) }], 'known while it runs')
  writer.append(soundOf(3))
  await writer.close()
  await keeper.passes(2_000)
  const whole = (await bytesIn(keeper.places, key))!
  t.ok(whole.subarray(44, 32_044).equals(soundOf(2).subarray(44)))
  t.ok(whole.subarray(32_044, 48_044).every((byte) => byte === 0))
  t.ok(whole.subarray(48_044).equals(soundOf(3).subarray(44)))
  await seeded.sql`update calls set post_processing_status = 'completed', recording_key = null where id = ${callId}`
  await keeper.passes(4_000, 1_000)
  t.same(await keeper.files(), [`${callId}.1500.opus`, `${callId}.1500.peaks`, `${callId}.1500.wav`, `${callId}.wav`])
  t.same(await statesOf(seeded.sql), { kept: 2 }, 'what the dead one left is kept as well')
  t.match(await seeded.sql`select recording_key, recorded_ms from calls where id = ${callId}`, [
    { recordingKey: key, recordedMs: 2_500 },
  ])
  const peaks = await keeper.ask(`/v1/accounts/${seeded.own.id}/phone-calls/${callId}/audio/peaks`)
  t.match(peaks.json, { durationMs: 2_500 })
  t.equal((await bytesIn(keeper.places, key, 'opus'))?.toString('latin1', 0, 4), 'OggS')
  t.equal(await keeper.places.remove(key), 'removed')
  t.same([await keeper.files(), await statesOf(seeded.sql), await keeper.places.read(key)], [[], {}, null])
})

test('parts of a call that two machines have become one in the storage, and go from everywhere', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openS3rver(t)
  const [first, second] = [await openKeeper(t, seeded, storage.settings), await openKeeper(t, seeded, storage.settings)]
  const { callId, key } = await recordCall(seeded, first, soundOf(2), { postProcessingStatus: 'in_progress' })
  const writer = second.places.create(partKeyOf(key, 5_000))
  writer.append(soundOf(3))
  await writer.close()
  await second.places.noted()
  t.match(await second.places.read(key), { lacks: [{ from: 0, to: 5_000, isComing: true }] })
  await seeded.sql`update calls set post_processing_status = 'completed' where id = ${callId}`
  // Its copies wait for the part that the other one has.
  await second.passes(2_000)
  await first.passes(2_000)
  await second.passes(90_000)
  t.same([await first.files(), await second.files()], [[], []])
  t.same(await statesOf(seeded.sql), { shipped: 2 })
  t.match(await seeded.sql`select recorded_ms from calls where id = ${callId}`, [{ recordedMs: 6_000 }])
  for (const { places } of [first, second]) {
    const whole = (await bytesIn(places, key))!
    t.equal(whole.length, 44 + 6_000 * 32)
    t.ok(whole.subarray(44, 32_044).equals(soundOf(2).subarray(44)))
    t.ok(whole.subarray(-32_000).equals(soundOf(3).subarray(44)))
    t.match(peaksOf((await bytesIn(places, key, 'peaks'))!), { durationMs: 6_000 })
  }
  await first.places.remove(key)
  t.equal(await second.places.read(key), null)
  await second.passes(4_000, 1_000)
  for (const part of [key, partKeyOf(key, 5_000)])
    for (const form of ['wav', 'opus', 'peaks'] as const)
      t.equal(await first.places.bucket?.read(recordingKeyIn(form, part)), null)
})

for (const manner of ['away', 'full', 'busy', 'refusing', 'hangs', 'truncates', 'garbles'] as const satisfies Manner[])
  test(`a storage that is ${manner} for an hour: nothing is lost, it can be played meanwhile, and it is shipped later`, async (t) => {
    const seeded = await openSeededApi(t)
    const storage = await openMoodyStorage(t)
    const keeper = await openKeeper(t, seeded, storage.settings)
    storage.manner = manner
    const recorded = []
    for (const number of [1, 2, 3]) recorded.push(await recordCall(seeded, keeper, soundOf(number)))
    // Each try at one that hangs takes its time-out in real time.
    await keeper.passes(hour, manner === 'hangs' ? 900_000 : 60_000)
    t.same(await statesOf(seeded.sql), { waiting: 3 })
    for (const [at, { key }] of recorded.entries()) {
      t.ok(soundOf(at + 1).equals((await bytesIn(keeper.places, key))!), 'as it was recorded')
      t.ok(await bytesIn(keeper.places, key, 'opus'), 'copies do not wait for the storage')
    }
    const tries = storage.asked.length
    t.ok(tries > 3 && tries < 150, `${tries} requests in an hour`)
    const told = seeded.lines.filter(({ level }) => level === 'error')
    t.equal(told.length, 1, 'told once as an error')
    t.match(told[0]?.message, /stay in their folder/)

    storage.manner = 'good'
    await keeper.passes(16 * 60_000, 60_000)
    t.same(await statesOf(seeded.sql), { shipped: 3 })
    t.same(await keeper.files(), [])
    for (const [at, { key }] of recorded.entries()) t.ok(soundOf(at + 1).equals((await bytesIn(keeper.places, key))!))
    t.equal(seeded.lines.filter(({ message }) => message === 'recordings are shipped again').length, 1)
  })

test('tries have growing pauses and an end: then it is told, stays in the folder, and is tried again at the next start', async (t) => {
  t.same([1, 2, 3, 4, 5, 6, 600].map(pauseAfter), [5_000, 15_000, 60_000, 300_000, 900_000, 900_000, 900_000])
  const seeded = await openSeededApi(t)
  const storage = await openMoodyStorage(t)
  const keeper = await openKeeper(t, seeded, storage.settings)
  storage.manner = 'refusing'
  const { callId, key } = await recordCall(seeded, keeper, soundOf(1))
  await keeper.keeping.idle()
  await seeded.sql`update recordings set attempts = ${mostAttempts - 1}`
  await keeper.passes(20 * 60_000, 60_000)
  t.same(await statesOf(seeded.sql), { failed: 1 })
  t.match(seeded.lines.at(-1), { level: 'error', fields: { recording: key, problem: /403/ } })
  t.same(await keeper.files(), forms(callId))
  t.ok(await bytesIn(keeper.places, key))
  await keeper.close()

  storage.manner = 'good'
  const next = await openKeeper(t, seeded, storage.settings, { folder: keeper.folder })
  await next.keeping.idle()
  t.same(await statesOf(seeded.sql), { shipped: 1 })
})

test('recordings of before: they play as they did, get their copies, and are shipped once there is a storage', async (t) => {
  const seeded = await openSeededApi(t)
  const keeper = await openKeeper(t, seeded, null)
  const { own, sql } = seeded
  const callId = await insertCall(sql, own.id, own.worker.id, { postProcessingStatus: 'completed' })
  const key = `${own.id}/${callId}.wav`
  await sql`update calls set recording_key = ${key} where id = ${callId}`
  const file = path.join(keeper.folder, key)
  await mkdir(path.dirname(file))
  await writeFile(file, soundOf(7))
  await utimes(file, 1, 1)
  await writeFile(path.join(keeper.folder, 'notes.txt'), 'of an operator')
  await writeFile(path.join(keeper.folder, own.id, 'stranger.wav'), 'of no call')
  const link = await keeper.ask(`/v1/accounts/${own.id}/phone-calls/${callId}/audio/url`)
  t.equal(link.status, 200)
  t.equal((await keeper.ask(`/v1/accounts/${own.id}/phone-calls/${callId}/audio/peaks`)).status, 404, 'not yet')

  await keeper.keeping.idle()
  t.same(await keeper.files(), [...forms(callId), 'stranger.wav'].toSorted())
  await keeper.close()
  const storage = await openS3rver(t)
  const next = await openKeeper(t, seeded, storage.settings, { folder: keeper.folder })
  await next.keeping.idle()
  t.same(await next.files(), ['stranger.wav'])
  t.ok(soundOf(7).equals((await bytesIn(next.places, key))!))
})

test('a process that died over a recording: another one of the same folder ships it when the claim has run out', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openS3rver(t)
  const { sql, hands } = seeded
  const keeper = await openKeeper(t, seeded, storage.settings)
  await recordCall(seeded, keeper, soundOf(1))
  await sql`update recordings set claimed_by = 'dead', claimed_until = ${hands.clock.now() + 60_000}, in_storage = true`
  await keeper.keeping.idle()
  t.same(await statesOf(sql), { waiting: 1 })
  await keeper.passes(60_000)
  t.same(await statesOf(sql), { shipped: 1 })
})

test('a process that died between the storage and its folder leaves no file behind for long', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openS3rver(t)
  const keeper = await openKeeper(t, seeded, storage.settings)
  const { callId, key } = await recordCall(seeded, keeper, soundOf(1))
  await keeper.keeping.idle()
  await writeFile(path.join(keeper.folder, key), soundOf(1))
  t.same(await keeper.files(), [`${callId}.wav`])
  await keeper.passes(hour, hour)
  t.same(await keeper.files(), [])
  t.ok(await bytesIn(keeper.places, key))
})

test('a link plays the same from the folder and from the storage: bytes, ranges, conditions, HEAD, formats and expiry', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openS3rver(t)
  const keeper = await openKeeper(t, seeded, storage.settings)
  const { own, hands } = seeded
  const { callId } = await recordCall(seeded, keeper, soundOf(1), { postProcessingStatus: 'in_progress' })
  const linkTo = async (query = '') =>
    (await keeper.ask(`/v1/accounts/${own.id}/phone-calls/${callId}/audio/url${query}`)).json
  const fetch = createApi(keeper.recordingsApi)
  const get = async (url: string, headers: Record<string, string> = {}, method = 'GET') => {
    const response = await fetch(new Request(url, { method, headers }), { remoteAddress: '192.0.2.7' })
    const told = [
      'content-type',
      'content-length',
      'content-range',
      'content-disposition',
      'accept-ranges',
      'etag',
      'cache-control',
    ]
    const body = Buffer.from(await response.arrayBuffer()).toString('base64')
    return { status: response.status, headers: told.map((name) => response.headers.get(name)), body }
  }
  const { url, format } = await linkTo()
  t.equal(format, undefined)
  t.equal(
    (await keeper.ask(`/v1/accounts/${own.id}/phone-calls/${callId}/audio/url?format=opus`)).status,
    404,
    'not made yet',
  )
  t.equal((await keeper.ask(`/v1/accounts/${own.id}/phone-calls/${callId}/audio/url?format=mp3`)).status, 400)
  const all = async () => {
    const etag = (await get(url)).headers[5] ?? ''
    const asked = [
      'bytes=0-0',
      'bytes=100-199',
      'bytes=-5',
      'bytes=31000-',
      'bytes=32000-40000',
      'bytes=900000-',
      'bytes=0-1,5-6',
    ]
    return [
      await get(url),
      ...(await Promise.all(asked.map((range) => get(url, { range })))),
      await get(url, { range: 'bytes=0-9', 'if-range': etag }),
      await get(url, { range: 'bytes=0-9', 'if-range': '"another"' }),
      await get(url, {}, 'HEAD'),
    ].map((answer) => ({ ...answer, body: answer.status < 400 ? answer.body : '' }))
  }
  const fromFolder = await all()
  t.same(
    fromFolder.map(({ status }) => status),
    [200, 206, 206, 206, 206, 206, 416, 200, 206, 200, 200],
  )
  await seeded.sql`update calls set post_processing_status = 'completed'`
  await keeper.passes(2_000)
  t.same(await keeper.files(), [], 'shipped')
  t.same(await all(), fromFolder)

  const opus = await linkTo('?format=opus')
  t.equal(opus.format, 'opus')
  const copy = await get(opus.url)
  t.same([copy.status, copy.headers[0], copy.headers[3]], [200, 'audio/ogg', `attachment; filename="${callId}.opus"`])
  t.equal(Buffer.from(copy.body, 'base64').toString('latin1', 0, 4), 'OggS')
  t.equal((await get(opus.url.replace('.opus?', '.wav?'))).status, 401, 'a link is good for one format')
  t.equal((await get(url.replace('.wav?', '.peaks?'))).status, 401)
  const peaks = await keeper.ask(`/v1/accounts/${own.id}/phone-calls/${callId}/audio/peaks`)
  t.match(peaks.json, { id: callId, peaksPerSecond: 10, durationMs: 1_000 })
  t.same(
    peaks.json.channels.map((values: number[]) => values.length),
    [10],
  )
  t.ok(peaks.json.channels[0].every((value: number) => Math.abs(value - 8_000 / 32_768) < 0.001))

  hands.turn(15 * 60_000)
  t.same([(await get(url)).status, (await get(opus.url)).status], [401, 401])
})

test('a storage that is away when a recording is asked for is 503, and the recording is not gone', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openMoodyStorage(t)
  const keeper = await openKeeper(t, seeded, storage.settings)
  const { callId } = await recordCall(seeded, keeper, soundOf(1))
  await keeper.keeping.idle()
  const link = `/v1/accounts/${seeded.own.id}/phone-calls/${callId}/audio/url`
  storage.manner = 'away'
  const answer = await keeper.ask(link)
  t.same([answer.status, answer.json.type], [503, 'SERVICE_UNAVAILABLE'])
  storage.manner = 'good'
  t.equal((await keeper.ask(link)).status, 200)
  storage.objects.clear()
  t.equal((await keeper.ask(link)).status, 404, 'what the storage has lost cannot be played')
})

test('a removal takes every form from folder and storage', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openMoodyStorage(t)
  const keeper = await openKeeper(t, seeded, storage.settings)
  const shipped = await recordCall(seeded, keeper, soundOf(1))
  await keeper.keeping.idle()
  t.equal(storage.objects.size, 3)
  const local = await recordCall(seeded, keeper, soundOf(2), { postProcessingStatus: 'in_progress' })
  t.equal(await keeper.places.remove(shipped.key), 'removed')
  t.equal(storage.objects.size, 0)
  t.equal(await keeper.places.remove(local.key), 'removed')
  t.same(await keeper.files(), [])
  t.same(await statesOf(seeded.sql), {})
  t.equal(await keeper.places.remove(local.key), 'absent')
})

test('a removal that cannot reach the storage is an order: nobody reads the recording any more, and it goes when the storage is back', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openMoodyStorage(t)
  const keeper = await openKeeper(t, seeded, storage.settings)
  const { key, callId } = await recordCall(seeded, keeper, soundOf(1))
  await keeper.keeping.idle()
  storage.manner = 'away'
  t.equal(await keeper.places.remove(key), 'ordered')
  await seeded.sql`delete from calls where id = ${callId}`
  await keeper.passes(5 * 60_000)
  t.same(await statesOf(seeded.sql), { removing: 1 })
  t.equal(await keeper.places.read(key), null)
  t.equal(storage.objects.size, 3)
  storage.manner = 'good'
  t.equal(await keeper.places.read(key), null, 'the order holds')
  await keeper.passes(6 * 60_000)
  t.equal(storage.objects.size, 0)
  t.same(await statesOf(seeded.sql), {})
})

test('a removal in the middle of the shipping leaves nothing, nowhere', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openMoodyStorage(t)
  const keeper = await openKeeper(t, seeded, storage.settings)
  const { key } = await recordCall(seeded, keeper, soundOf(1))
  storage.manner = 'hangs'
  const asked = storage.asked.length
  const working = keeper.keeping.idle()
  while (storage.asked.length === asked) await new Promise((resolve) => setImmediate(resolve))
  storage.manner = 'good'
  t.equal(await keeper.places.remove(key), 'ordered', 'what is on its way may still arrive')
  t.same([await keeper.files(), storage.objects.size, await keeper.places.read(key)], [[], 0, null])
  storage.objects.set(`/recordings/calls/${key}`, soundOf(1))
  await working
  await keeper.passes(90_000)
  t.same([await keeper.files(), storage.objects.size, await statesOf(seeded.sql)], [[], 0, {}])
})

test('a removal of a recording that is in the folder of another machine is carried out there', async (t) => {
  const seeded = await openSeededApi(t)
  const here = await openKeeper(t, seeded, null)
  const there = await openKeeper(t, seeded, null)
  const { key } = await recordCall(seeded, there, soundOf(1))
  await there.keeping.idle()
  t.equal(await here.places.remove(key), 'ordered')
  await here.passes(4_000)
  t.equal(await there.places.read(key), null, 'not even there')
  await there.passes(4_000)
  t.same([await there.files(), await statesOf(seeded.sql)], [[], {}])
})

test('a recording whose file never came to be leaves no row', async (t) => {
  const seeded = await openSeededApi(t)
  const keeper = await openKeeper(t, seeded, null)
  const { key } = await recordCall(seeded, keeper, soundOf(1))
  await keeper.places.folder.remove(key)
  await keeper.keeping.idle()
  t.same(await statesOf(seeded.sql), {})
})

test('of a recording whose disk was lost the storage keeps what is whole, and nothing that is a part', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openMoodyStorage(t)
  const keeper = await openKeeper(t, seeded, storage.settings)
  const { sql } = seeded
  const [whole, part] = [
    await recordCall(seeded, keeper, soundOf(1), { postProcessingStatus: 'in_progress' }),
    await recordCall(seeded, keeper, soundOf(2), { postProcessingStatus: 'in_progress' }),
  ]
  storage.objects.set(`/recordings/calls/${whole.key}`, soundOf(1))
  storage.objects.set(`/recordings/calls/${part.key.replace('.wav', '.opus')}`, soundOf(2))
  for (const { key } of [whole, part]) await keeper.places.folder.remove(key)
  await sql`update recordings set in_storage = true, has_copies = true`
  await sql`update calls set post_processing_status = 'completed', recording_key = null`
  await keeper.passes(60_000)
  t.same(await statesOf(sql), { shipped: 1 })
  t.same([...storage.objects.keys()], [`/recordings/calls/${whole.key}`])
  t.ok(soundOf(1).equals((await bytesIn(keeper.places, whole.key))!))
  t.match(await sql`select recording_key, recorded_ms from calls where id = ${whole.callId}`, [
    { recordingKey: whole.key, recordedMs: 1_000 },
  ])
})

test('a recording that a machine had not noted when it died goes when the machine is back, though its call was deleted meanwhile', async (t) => {
  const seeded = await openSeededApi(t)
  const here = await openKeeper(t, seeded, null)
  const { own, sql, hands } = seeded
  const callId = await insertCall(sql, own.id, own.worker.id, { postProcessingStatus: 'completed' })
  const away = await createFolder(t)
  const file = path.join(away, own.id, `${callId}.wav`)
  await mkdir(path.dirname(file))
  for (const name of [file, path.join(away, own.id, 'stranger.wav')]) {
    await writeFile(name, soundOf(1))
    await utimes(name, 1, 1)
  }
  t.equal(await here.places.remove(`${own.id}/${callId}.wav`), 'absent')
  await sql`delete from calls where id = ${callId}`
  t.same(await statesOf(sql), {}, 'nobody is told of work that nobody has')
  const back = await openKeeper(t, seeded, null, { folder: away })
  await back.keeping.idle()
  t.same(await back.files(), ['stranger.wav'])
  t.match(await sql`select folder, state from recordings`, [{ folder: '', state: 'removing' }], 'a third may have more')

  t.equal(await here.places.remove(`${own.id}/another.wav`), 'absent')
  hands.turn(91 * 86_400_000)
  await here.keeping.idle()
  t.same(await sql`select key from recordings`, [], 'an order is not kept for ever')
})

test('of a call that moved from a machine that was killed to another one nothing is left on either, nor in the storage', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openMoodyStorage(t)
  const { own, sql, hands } = seeded
  const first = await openKeeper(t, seeded, storage.settings)
  const other = await openKeeper(t, seeded, storage.settings)
  for (const { keeping } of [first, other]) await keeping.idle()
  await first.close()
  const { callId, key } = await recordCall(seeded, other, soundOf(1))
  const capture = recordingKeyIn('pcap', key)
  const writer = other.places.create(capture)
  writer.append(Buffer.from('packets'))
  await writer.close()
  // What a process leaves that is killed: files, and no row.
  const left = path.join(first.folder, capture)
  await mkdir(path.dirname(left), { recursive: true })
  await writeFile(left, 'packets of bef')
  await other.passes(4_000, 2_000)
  t.ok(storage.objects.has(`/recordings/calls/${capture}`), 'shipped')

  await sql`delete from calls where id = ${callId}`
  t.equal(await other.places.remove(key), 'removed')
  t.equal(storage.objects.size, 0)
  t.same([await first.files(), await statesOf(sql)], [[`${callId}.pcap`], {}], 'its machine is away')
  const again = await openKeeper(t, seeded, storage.settings, { folder: first.folder })
  await again.keeping.idle()
  t.same(await again.files(), [])
  hands.turn(91 * 86_400_000)
  await again.keeping.idle()
  t.same(await sql`select key from recordings`, [], 'an order is not kept for ever')

  const kept = await insertCall(sql, own.id, own.worker.id, { postProcessingStatus: 'completed' })
  await sql`insert into recordings ${sql({ key: `${own.id}/${kept}.wav`, callId: kept, folder: again.places.folderId, state: 'waiting', inStorage: true, createdAt: hands.clock.now(), runAt: hands.clock.now() })}`
  await again.passes(4_000, 2_000)
  t.same(await sql`select key from recordings`, [], 'of a call that is there a lost file orders nothing')
})

test('a capture whose process was killed before it wrote anything holds up nothing', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openMoodyStorage(t)
  const keeper = await openKeeper(t, seeded, storage.settings)
  const { own, sql } = seeded
  const callId = await insertCall(sql, own.id, own.worker.id, { postProcessingStatus: 'completed' })
  await mkdir(path.join(keeper.folder, own.id))
  const file = path.join(keeper.folder, own.id, `${callId}.pcap`)
  await writeFile(file, '')
  await utimes(file, 1, 1)
  await keeper.keeping.idle()
  t.same([await statesOf(sql), await keeper.files()], [{ shipped: 1 }, []])
  t.equal(await keeper.places.read(`${own.id}/${callId}.pcap`), null)
})

test('a file that is no WAV is shipped all the same, without copies', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openMoodyStorage(t)
  const keeper = await openKeeper(t, seeded, storage.settings)
  await recordCall(seeded, keeper, Buffer.from('not a WAV file, and nothing that could be played'))
  await keeper.passes(3 * 60_000)
  t.same(await statesOf(seeded.sql), { shipped: 1 })
  t.equal(storage.objects.size, 1)
})

test('processes that share a folder do each recording once, and what is new goes first', async (t) => {
  const seeded = await openSeededApi(t)
  const storage = await openMoodyStorage(t)
  const one = await openKeeper(t, seeded, storage.settings)
  const other = await openKeeper(t, seeded, storage.settings, { folder: one.folder })
  t.equal(one.places.folderId, other.places.folderId)
  for (let number = 0; number < 12; number++) {
    seeded.hands.turn(1_000)
    await recordCall(seeded, one, soundOf(number), { postProcessingStatus: 'in_progress' })
  }
  await seeded.sql`update calls set post_processing_status = 'completed'`
  await Promise.all([one.passes(20_000, 2_000), other.keeping.idle()])
  t.same(await statesOf(seeded.sql), { shipped: 12 })
  const put = storage.asked.filter(({ method, path: name }) => method === 'PUT' && name.endsWith('.wav'))
  t.equal(put.length, 12)
})
