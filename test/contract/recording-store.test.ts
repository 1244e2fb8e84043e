/** The rules of the RecordingStore port, over every store: the folder, the storage behind it, both together, and the memory of tests. */
import { t as root, test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import { joinRecording } from '../../media/recording/joined-recording.ts'
import { createRecordingBucket } from '../../store/recording-bucket.ts'
import { createRecordingFolder } from '../../store/recording-folder.ts'
import { createRecordingPlaces, readFolderId } from '../../store/recording-places.ts'
import { createMemoryRecordings } from '../fake/memory-recordings.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createRandom } from '../fake/random.ts'
import { openMoodyStorage, openS3rver } from '../fake/s3-storage.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createFolder } from '../scenes/folder.ts'

const stores: Readonly<Record<string, (t: Test) => Promise<RecordingStore>>> = {
  folder: async (t) =>
    createRecordingFolder({ folder: await createFolder(t), clock: systemClock, log: createQuietLog() }),
  'folder and storage': openPlaces,
  storage: openBucket,
  memory: async () => createMemoryRecordings(),
}

/** One for all rules: nothing is written to it, because there are no calls. */
let database: ReturnType<typeof openTestDatabase> | null = null

/** As the service has them; nothing is shipped here. */
async function openPlaces(t: Test): Promise<RecordingStore> {
  const { sql } = await (database ??= openTestDatabase(root))
  const [folder, { settings }] = [await createFolder(t), await openS3rver(t)]
  const shared = { clock: systemClock, log: createQuietLog() }
  const bucket = createRecordingBucket(settings)
  t.teardown(() => bucket.close())
  const inFolder = createRecordingFolder({ folder, ...shared })
  const places = createRecordingPlaces({
    ...shared,
    sql,
    folder: inFolder,
    folderId: await readFolderId(folder),
    bucket,
    join: joinRecording,
  })
  t.teardown(() => places.noted())
  return places
}

/** What is complete in a folder is put into a bucket, and read there. */
async function openBucket(t: Test): Promise<RecordingStore> {
  const [folder, { settings }] = [await createFolder(t), await openMoodyStorage(t)]
  const bucket = createRecordingBucket(settings)
  t.teardown(() => bucket.close())
  const local = createRecordingFolder({ folder, clock: systemClock, log: createQuietLog() })
  const never = new AbortController().signal
  return {
    create(key) {
      const writer = local.create(key)
      const close = async () => {
        await writer.close()
        if (await local.sizeOf(key)) await bucket.put(key, local.pathOf(key), 'audio/wav', never)
      }
      let closed: Promise<void> | null = null
      return { ...writer, close: () => (closed ??= close()) }
    },
    // A bucket takes no empty files, and knows no bad keys.
    async read(key) {
      const reader = await local.read(key)
      return reader?.size === 0 ? reader : bucket.read(key)
    },
    async remove(key) {
      const removed = await local.remove(key)
      await bucket.remove(key)
      return removed
    },
  }
}

async function write(store: RecordingStore, key: string, bytes: Uint8Array): Promise<void> {
  const writer = store.create(key)
  writer.append(bytes)
  await writer.close()
}

const bytesOf = async (stream: ReadableStream<Uint8Array>): Promise<Buffer> =>
  Buffer.from(await new Response(stream).arrayBuffer())

/** All of it. Null: there is none. */
async function read(store: RecordingStore, key: string): Promise<Buffer | null> {
  const reader = await store.read(key)
  return reader && bytesOf(reader.stream(0, reader.size - 1))
}

const key = 'account/call.wav'
const random = createRandom(11)
/** Longer than what any store reads or sends in one piece. */
const long = Buffer.from(Array.from({ length: 300_000 }, () => random.below(256)))

const rules: Readonly<Record<string, (t: Test, store: RecordingStore) => Promise<void>>> = {
  'what is written is read, in its order, however often the beginning is written again': async (t, store) => {
    for (let round = 0; round < 10; round += 1) {
      const writer = store.create(`account/round-${round}.wav`)
      let expected = Buffer.alloc(0)
      for (let step = 0; step < 100; step += 1) {
        const bytes = Buffer.alloc(random.below(4_000), random.below(256))
        if (random.below(10) === 0 && bytes.length <= expected.length) {
          writer.overwriteStart(bytes)
          expected = Buffer.concat([bytes, expected.subarray(bytes.length)])
        } else {
          writer.append(bytes)
          expected = Buffer.concat([expected, bytes])
        }
      }
      await writer.close()
      t.ok(expected.equals((await read(store, `account/round-${round}.wav`))!), `round ${round}`)
    }
  },

  'a buffer may be used again as soon as it was given': async (t, store) => {
    const writer = store.create(key)
    const buffer = Buffer.from('header')
    writer.append(buffer)
    buffer.write('HEADER')
    writer.overwriteStart(buffer)
    buffer.fill('x')
    await writer.close()
    t.equal((await read(store, key))?.toString(), 'HEADER')
  },

  'nothing is written after the end, which may come more than once': async (t, store) => {
    const writer = store.create(key)
    writer.append(Buffer.from('all of it'))
    await Promise.all([writer.close(), writer.close()])
    writer.append(Buffer.from(' and more'))
    writer.overwriteStart(Buffer.from('ALL'))
    await writer.close()
    t.equal((await read(store, key))?.toString(), 'all of it')
  },

  'a recording that exists is never overwritten': async (t, store) => {
    await write(store, key, Buffer.from('first'))
    await write(store, key, Buffer.from('second'))
    t.equal((await read(store, key))?.toString(), 'first')
  },

  'recordings that are written at once do not mix, nor do accounts': async (t, store) => {
    const keys = ['one/call.wav', 'other/call.wav', 'one/another.wav']
    const writers = keys.map((name) => store.create(name))
    for (let step = 0; step < 50; step += 1)
      writers.forEach((writer, index) => writer.append(Buffer.alloc(1_000, index + 1)))
    await Promise.all(writers.map((writer) => writer.close()))
    for (const [index, name] of keys.entries())
      t.ok(Buffer.alloc(50_000, index + 1).equals((await read(store, name))!), name)
  },

  'what is not there is null': async (t, store) => {
    await write(store, key, Buffer.from('sound'))
    t.equal(await store.read('account/none.wav'), null)
    t.equal(await store.read('nobody/call.wav'), null)
  },

  'a recording of nothing is there': async (t, store) => {
    await store.create(key).close()
    const reader = await store.read(key)
    t.equal(reader?.size, 0)
    t.equal((await bytesOf(reader!.stream(0, -1))).length, 0)
  },

  'any range of bytes can be read, several at once': async (t, store) => {
    await write(store, key, long)
    const reader = (await store.read(key))!
    t.equal(reader.size, long.length)
    const last = long.length - 1
    const drawn = Array.from({ length: 40 }, () => [random.below(long.length), random.below(long.length)])
    const ranges = [...drawn.map((pair) => pair.toSorted((a, b) => a - b)), [0, last], [0, 0], [last, last], [5, 4]]
    const found = await Promise.all(ranges.map(([from = 0, to = 0]) => bytesOf(reader.stream(from, to))))
    for (const [index, [from = 0, to = 0]] of ranges.entries())
      t.ok(long.subarray(from, to + 1).equals(found[index]!), `${from} to ${to}`)
  },

  'a range that is none throws': async (t, store) => {
    await write(store, key, Buffer.from('sound'))
    const reader = (await store.read(key))!
    for (const [from, to] of [
      [-1, 2],
      [0, 5],
      [5, 5],
      [3, 1],
    ] as const)
      t.throws(() => reader.stream(from, to), RangeError, `${from} to ${to}`)
  },

  'who goes away in the middle disturbs nobody': async (t, store) => {
    await write(store, key, long)
    const reader = (await store.read(key))!
    const stream = reader.stream(0, long.length - 1).getReader()
    t.ok((await stream.read()).value?.length)
    await stream.cancel()
    t.ok(long.equals((await read(store, key))!))
  },

  'what is removed is gone for every reader, and nothing else is': async (t, store) => {
    await write(store, key, long)
    await write(store, 'account/another.wav', Buffer.from('stays'))
    const reader = (await store.read(key))!
    t.equal(await store.remove(key), 'removed')
    t.equal(await store.read(key), null)
    t.equal((await read(store, 'account/another.wav'))?.toString(), 'stays')
    t.equal(await store.remove(key), 'absent', 'once more')
    t.equal(await store.remove('account/none.wav'), 'absent')
    await bytesOf(reader.stream(0, 9)).catch(() => null)
    t.equal(await store.read(key), null, 'who reads it meanwhile brings nothing back')
  },

  'only sound and packets are written while a call runs, and every form is asked for by its ending': async (
    t,
    store,
  ) => {
    await write(store, key, Buffer.from('sound'))
    t.equal(await store.read('account/call.opus'), null)
    t.equal(await store.read('account/call.peaks'), null)
    for (const form of ['opus', 'peaks']) t.throws(() => store.create(`account/call.${form}`), /made of another/)
  },

  'a key has one form, and leads nowhere else': async (t, store) => {
    const wrong = [
      'call.wav',
      '',
      'account/call',
      'account/call.mp3',
      'account/deep/call.wav',
      '/call.wav',
      'account//call.wav',
    ]
    const hostile = [
      '../call.wav',
      'account/../../call.wav',
      'account/call.wav\0',
      'account\\call.wav',
      '.a/call.wav',
      'a b/c.wav',
    ]
    for (const name of [...wrong, ...hostile, `account/${'x'.repeat(65)}.wav`]) {
      t.throws(() => store.create(name), /recording key/, JSON.stringify(name))
      await t.rejects(store.read(name), /recording key/, JSON.stringify(name))
      await t.rejects(store.remove(name), /recording key/, JSON.stringify(name))
    }
  },
}

for (const [name, open] of Object.entries(stores))
  test(`the recording store: ${name}`, async (t) => {
    for (const [rule, keeps] of Object.entries(rules)) await t.test(rule, async (t) => keeps(t, await open(t)))
  })
