/** Recordings in a folder, beyond the rules of every store (test/contract/recording-store.test.ts): what is on the disk, and what a disk may do. */
import { mkdir, mkdtemp, open, readdir, readFile, rm, stat, writeFile, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import type { Log } from '../../model/log.ts'
import type { RecordingWriter } from '../../model/recording-store.ts'
import { createRecordingFolder } from '../../store/recording-folder.ts'
import { createRecordingWriter } from '../../store/recording-writer.ts'
import { createRandom } from '../fake/random.ts'
import { until } from '../scenes/in-time.ts'
import { mountSmallDisk } from '../scenes/small-disk.ts'

const folder = await mkdtemp(path.join(tmpdir(), 'parley-recordings-'))
t.teardown(() => rm(folder, { recursive: true }))

/** A disk of 400 kB, where this user may mount one. */
const disk = await mkdtemp(path.join(tmpdir(), 'parley-disk-'))
t.teardown(() => rm(disk, { recursive: true }))
const isMounted = await mountSmallDisk(t, disk, '400k')

function createHands() {
  const waiting = new Set<() => void>()
  return {
    /** Runs what waits now, as when all time has passed. */
    turn() {
      const actions = [...waiting]
      waiting.clear()
      for (const action of actions) action()
    },
    waiting: () => waiting.size,
    now: () => 0,
    after(_: number, action: () => void) {
      waiting.add(action)
      return () => void waiting.delete(action)
    },
  }
}

function createLines() {
  const lines: string[] = []
  const log: Log = { debug() {}, info() {}, warn() {}, error: (message) => void lines.push(message), with: () => log }
  return { lines, log }
}

const clock = createHands()
const { lines, log } = createLines()
const recordings = createRecordingFolder({ folder, clock, log })
const fileOf = (key: string) => path.join(folder, key)

async function read(key: string, from: number, to: number): Promise<Buffer> {
  const reader = await recordings.read(key)
  return Buffer.from(await new Response(reader?.stream(from, to)).arrayBuffer())
}

await t.test('writes land in order, and the beginning may be written again in between', async (t) => {
  const random = createRandom(7)
  for (let round = 0; round < 20; round++) {
    const key = `account/order-${round}.wav`
    const writer = recordings.create(key)
    let expected = Buffer.alloc(0)
    for (let step = 0; step < 100; step++) {
      const bytes = Buffer.alloc(random.below(4000), random.below(256))
      if (random.below(10) === 0 && bytes.length <= expected.length) {
        writer.overwriteStart(bytes)
        bytes.copy(expected)
      } else {
        writer.append(bytes)
        expected = Buffer.concat([expected, bytes])
      }
      bytes.fill(0xff)
      if (random.below(20) === 0) clock.turn()
      if (random.below(20) === 0) await turn()
    }
    await Promise.all([writer.close(), writer.close()])
    t.ok(expected.equals(await readFile(fileOf(key))), `round ${round}`)
    t.equal(clock.waiting(), 0)
  }
  t.strictSame(lines, [])
})

await t.test('an account whose folder somebody removed while calls ran is recorded again', async (t) => {
  for (const call of ['first', 'second']) {
    const writer = recordings.create(`emptied/${call}.wav`)
    writer.append(Buffer.from(call))
    await writer.close()
    t.equal((await readFile(fileOf(`emptied/${call}.wav`))).toString(), call)
    t.equal((await stat(path.dirname(fileOf(`emptied/${call}.wav`)))).mode & 0o777, 0o700)
    await rm(path.dirname(fileOf(`emptied/${call}.wav`)), { recursive: true })
  }
})

await t.test('what is a moment old is in the file while the call still runs', async (t) => {
  const key = 'account/running.wav'
  const writer = recordings.create(key)
  writer.append(Buffer.from('header'))
  writer.append(Buffer.from(' and sound'))
  clock.turn()
  await until(async () => (await stat(fileOf(key)).catch(() => null))?.size === 16)
  t.equal(await readFile(fileOf(key), 'utf8'), 'header and sound')
  t.equal((await stat(fileOf(key))).mode & 0o777, 0o600)
  await writer.close()
  writer.append(Buffer.from('late'))
  t.equal((await read(key, 0, 15)).toString(), 'header and sound')
})

await t.test(
  'the first sound and the header that tells of it are one write, and nothing is opened before',
  async (t) => {
    let [opened, writes] = [0, 0]
    const file = path.join(folder, 'together.wav')
    const opening = async () => {
      opened++
      return createFullable(await open(file, 'wx'), () => ++writes < 0)
    }
    const writer = createRecordingWriter({ open: opening, clock, log })
    writer.append(Buffer.from('head sound'))
    writer.overwriteStart(Buffer.from('HEAD'))
    t.equal(opened, 0)
    clock.turn()
    await until(async () => (await stat(file).catch(() => null))?.size === 10)
    t.equal(await readFile(file, 'latin1'), 'HEAD sound')
    t.strictSame([opened, writes], [1, 1])
    writer.append(Buffer.from(' and more'))
    writer.overwriteStart(Buffer.from('Head'))
    await writer.close()
    t.equal(await readFile(file, 'latin1'), 'Head sound and more')
    t.strictSame([opened, writes], [1, 3])
  },
)

await t.test('a disk that does not keep up costs bounded memory and one line of log', async (t) => {
  const { lines, log } = createLines()
  const { promise: opening, resolve } = Promise.withResolvers<FileHandle>()
  const writer = createRecordingWriter({ open: () => opening, clock, log })
  const part = Buffer.alloc(1 << 20, 1)
  for (let count = 0; count < 20; count++) writer.append(part)
  t.strictSame(lines, ['recording backlog is full'])
  writer.overwriteStart(part)
  const file = path.join(folder, 'slow.wav')
  resolve(await open(file, 'wx'))
  await writer.close()
  t.equal((await stat(file)).size, 8 << 20)
  t.strictSame(lines, ['recording backlog is full'])
})

await t.test('a disk that fails ends the recording and nothing else', async (t) => {
  const { lines, log } = createLines()
  const broken = createRecordingWriter({ open: () => Promise.reject(new Error('EIO')), clock, log })
  broken.append(Buffer.from('sound'))
  clock.turn()
  await broken.close()
  broken.append(Buffer.from('sound'))
  t.strictSame(lines, ['recording cannot be written'])

  const file = path.join(folder, 'read-only.wav')
  await writeFile(file, 'old')
  const refused = createRecordingWriter({ open: () => open(file, 'r'), clock, log })
  refused.append(Buffer.from('sound'))
  await refused.close()
  t.strictSame(lines, ['recording cannot be written', 'recording cannot be written'])
  t.equal(clock.waiting(), 0)
})

/** The file, on a disk that may be full. */
function createFullable(handle: FileHandle, isFull: () => boolean): FileHandle {
  return new Proxy(handle, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (...given: unknown[]): unknown => {
        if (name === 'write' && isFull()) return Promise.reject(noSpace())
        return Reflect.apply(value, target, given)
      }
    },
  })
}

const noSpace = () => Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })

await t.test(
  'a recording that met a full disk goes on when there is room, its gap is silent, and it is not whole',
  async (t) => {
    const { lines, log } = createLines()
    const file = path.join(folder, 'full.wav')
    let isFull = false
    let tries = 0
    const writer = createRecordingWriter({
      open: async () => createFullable(await open(file, 'wx'), () => ++tries > 0 && isFull),
      clock,
      log,
    })
    const flushed = async (): Promise<void> => {
      const before = tries
      clock.turn()
      await until(() => tries > before)
    }
    const add = (text: string): Promise<void> => {
      writer.append(Buffer.from(text))
      return flushed()
    }
    await add('head')
    t.equal(writer.isWhole?.(), true)
    isFull = true
    await add('lost')
    await add('gone')
    await until(() => writer.isWhole?.() === false)
    isFull = false
    await add('more')
    writer.overwriteStart(Buffer.from('HEAD'))
    await flushed()
    isFull = true
    await add('tail')
    await writer.close()
    t.equal(await readFile(file, 'latin1'), 'HEAD\0\0\0\0\0\0\0\0more\0\0\0\0', 'sound lies where it belongs')
    t.equal(writer.isWhole?.(), false)
    const full = 'the disk has no room for a recording'
    t.strictSame(lines, [full, full], 'said once for each gap')
  },
)

await t.test('a recording that began on a full disk is made when there is room', async (t) => {
  const { log } = createLines()
  const file = path.join(folder, 'late.wav')
  let tries = 0
  const writer = createRecordingWriter({
    open: () => (++tries < 2 ? Promise.reject(noSpace()) : open(file, 'wx')),
    clock,
    log,
  })
  for (const text of ['head', 'more']) {
    writer.append(Buffer.from(text))
    clock.turn()
    await until(() => (text === 'head' ? tries === 1 : tries === 2))
  }
  await writer.close()
  t.equal(await readFile(file, 'latin1'), '\0\0\0\0more')
  t.equal(writer.isWhole?.(), false)
})

await t.test(
  'on a real disk: recordings stop before the reserve of the database, and where it is full; and both go on',
  { skip: !isMounted && 'nothing may be mounted here' },
  async (t) => {
    let now = 0
    const hands = { ...createHands(), now: () => now }
    const { log } = createLines()
    const part = Buffer.alloc(100_000, 7)
    const spare = path.join(disk, 'database')
    const store = createRecordingFolder({ folder: disk, reserve: 250_000, clock: hands, log })
    const bare = createRecordingFolder({ folder: disk, clock: hands, log })
    const [kept, greedy] = [store.create('a/kept.wav'), bare.create('a/greedy.wav')]
    const sizeOf = async (key: string) => (await stat(path.join(disk, key)).catch(() => null))?.size
    const add = async (writer: RecordingWriter, key: string, size: number): Promise<void> => {
      now += 2_000
      writer.append(part)
      await until(async () => (await sizeOf(key)) === size)
    }
    await add(kept, 'a/kept.wav', 100_000)
    await add(kept, 'a/kept.wav', 200_000)
    t.equal(kept.isWhole?.(), true)
    now += 2_000
    kept.append(part)
    await until(() => kept.isWhole?.() === false)
    t.equal(await sizeOf('a/kept.wav'), 200_000, 'what is left belongs to the database')
    await writeFile(spare, Buffer.alloc(100_000))
    await rm(spare)
    await add(greedy, 'a/greedy.wav', 100_000)
    await writeFile(spare, Buffer.alloc(100_000))
    greedy.append(part)
    await until(() => greedy.isWhole?.() === false)
    await kept.close()
    await Promise.all([rm(spare), rm(path.join(disk, 'a/kept.wav'))])
    await add(greedy, 'a/greedy.wav', 300_000)
    await greedy.close()
    const bytes = await readFile(path.join(disk, 'a/greedy.wav'))
    t.ok(bytes.subarray(0, 100_000).equals(part) && bytes.subarray(200_000).equals(part))
    t.ok(
      bytes.subarray(190_000, 200_000).every((byte) => byte === 0),
      'what was lost is silence',
    )
  },
)

await t.test('a client that goes away in the middle leaves no file open', async (t) => {
  const [key, bytes] = ['account/range.wav', Buffer.alloc(300_000, 7)]
  await mkdir(path.dirname(fileOf(key)), { recursive: true })
  await writeFile(fileOf(key), bytes)
  const openFiles = async () => (await readdir('/proc/self/fd').catch(() => [])).length
  const before = await openFiles()
  for (let count = 0; count < 20; count++) {
    const reading = await recordings.read(key)
    const stream = reading?.stream(0, 299_999).getReader()
    t.ok((await stream?.read())?.value?.length)
    await stream?.cancel()
    reading?.stream(0, 299_999)
  }
  t.equal(await openFiles(), before)
})

await t.test('a key never leads out of the folder', async (t) => {
  const before = await readdir(path.dirname(folder))
  for (const key of ['../escaped.wav', 'account/../../escaped.wav', '/tmp/escaped.wav'])
    t.throws(() => recordings.create(key), /recording key/, key)
  const names = await readdir(path.dirname(folder))
  t.strictSame(
    names.filter((name) => !before.includes(name) && name.startsWith('escaped')),
    [],
  )
})
