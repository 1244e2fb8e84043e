/** What a journal promises about what the disk, a crash and other processes do to it. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, open, readdir, readFile, rename, symlink, truncate } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { test, type Test } from 'tap'
import { JournalFull, type Place } from '../../store/journal-file.ts'
import { createJournalFolder, type AdoptedJournal, type JournalFolderOptions } from '../../store/journal-folder.ts'
import { makeFolder } from '../../store/make-folder.ts'
import { silentLog } from '../../model/log.ts'
import { createFolder } from '../scenes/folder.ts'
import { newId } from '../scenes/tenant.ts'

const run = promisify(execFile)

function openJournals(t: Test, dataDir: string, over: Partial<JournalFolderOptions> = {}) {
  const nodeId = newId<'node'>()
  const folder = path.join(dataDir, 'steps')
  const options = { folder, nodeId, limit: 10_000_000, reserve: 0, log: silentLog, ...over }
  const journals = createJournalFolder(options)
  t.teardown(() => journals.close())
  return { ...journals, file: path.join(folder, `${options.nodeId}.journal`), folder }
}

async function linesOf(journal: AdoptedJournal) {
  const lines: { text: string; place: Place }[] = []
  const damaged = await journal.scan((text, place) => void lines.push({ text, place }))
  return { damaged, texts: lines.map(({ text }) => text), lines }
}

/** As it is found after the process that wrote it was killed. */
async function leftBehind(t: Test, texts: readonly string[]) {
  const dataDir = await createFolder(t)
  const writer = openJournals(t, dataDir)
  await Promise.all(texts.map((text) => writer.own.append(text)))
  const dead = path.join(writer.folder, `${newId()}.journal`)
  await rename(writer.file, dead)
  await writer.close()
  return { dataDir, dead, folder: writer.folder }
}

/** One of them is longer than what is read at once. */
const texts = ['{"a":1}', '{"b":"ü\\n"}', `{"long":"${'x'.repeat(1_500_000)}"}`, '{"c":3}']

test('what was appended is there for the next process, in its order, and each line can be read by its place', async (t) => {
  const { dataDir, folder } = await leftBehind(t, texts)
  const next = openJournals(t, dataDir)
  const [found, ...others] = await next.adopt()
  t.same(others, [])
  const { damaged, texts: read, lines } = await linesOf(found!)
  t.same([damaged, read], [0, texts])
  for (const { text, place } of lines.toReversed()) t.equal(await found!.read(place), text)
  await found!.remove()
  await next.close()
  t.same(await readdir(folder), [], 'nothing is left of it')
})

test('a line that was being written when the process was killed is none, wherever it was cut', async (t) => {
  const { dead } = await leftBehind(t, ['{"first":1}', '{"second":2}'])
  const whole = await readFile(dead)
  const first = whole.indexOf(10) + 1
  for (let size = whole.length - 1; size >= first; size--) {
    const dataDir = await createFolder(t)
    const other = openJournals(t, dataDir)
    await other.own.append('{}')
    await appendFile(path.join(other.folder, `${newId()}.journal`), whole.subarray(0, size))
    const [found] = await other.adopt()
    const { damaged, texts: read } = await linesOf(found!)
    t.same([damaged, read], [0, ['{"first":1}']], `cut at ${size}`)
    await found!.remove()
    await other.close()
  }
})

test('a line that the disk has damaged is passed over and counted, and those behind it are read', async (t) => {
  const { dataDir, dead } = await leftBehind(t, ['{"first":1}', '{"second":2}', '{"third":3}'])
  const handle = await open(dead, 'r+')
  await handle.write(Buffer.from('X'), 0, 1, (await readFile(dead)).indexOf('second'))
  await handle.close()
  const [found] = await openJournals(t, dataDir).adopt()
  const { damaged, texts: read } = await linesOf(found!)
  t.same([damaged, read], [1, ['{"first":1}', '{"third":3}']])
  await found!.close()
})

test('a journal that cannot be read hides none of the others', async (t) => {
  const { dataDir, folder } = await leftBehind(t, ['{"first":1}'])
  const nowhere = path.join(dataDir, 'nowhere')
  for (const name of ['0', 'zz']) await symlink(nowhere, path.join(folder, `${name}.journal`))
  const [found, ...others] = await openJournals(t, dataDir).adopt()
  t.same(others, [])
  t.same((await linesOf(found!)).texts, ['{"first":1}'])
  await found!.remove()
})

test('a journal of a process that lives is nobody else’s, and of several that look for it one gets what a dead one left', async (t) => {
  const { dataDir } = await leftBehind(t, ['{"left":1}'])
  const living = openJournals(t, dataDir)
  await living.own.append('{"mine":1}')
  const others = Array.from({ length: 4 }, () => openJournals(t, dataDir))
  const found = (await Promise.all(others.map((other) => other.adopt()))).flat()
  t.same(await Promise.all(found.map(async (one) => (await linesOf(one)).texts)), [['{"left":1}']])
  await Promise.all(found.map((one) => one.remove()))
})

test('a process that is killed leaves its journal to the next one, under a folder with a long name', async (t) => {
  const dataDir = path.join(await createFolder(t), 'd'.repeat(120))
  const source = `
    import { createJournalFolder } from ${JSON.stringify(path.resolve(import.meta.dirname, '../../store/journal-folder.ts'))}
    const log = { error: (text, fields) => { console.error(text, fields); process.exit(3) } }
    const journals = createJournalFolder({ folder: ${JSON.stringify(path.join(dataDir, 'steps'))}, nodeId: 'killed', limit: 1e6, reserve: 0, log })
    await journals.own.append('{"by":"the killed"}')
    console.log('written')
    setInterval(() => {}, 1000)`
  await makeFolder(dataDir)
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  const next = openJournals(t, dataDir)
  child.kill('SIGSTOP')
  t.same(await next.adopt(), [], 'one that stands still lives')
  child.kill('SIGKILL')
  await once(child, 'exit')
  const [found] = await next.adopt()
  t.same((await linesOf(found!)).texts, ['{"by":"the killed"}'])
  await found!.remove()
})

test('a journal that is full, or whose disk takes no more, says so, and has room again when it is cleared', async (t) => {
  const { own } = openJournals(t, await createFolder(t), { limit: 100 })
  await own.append('x'.repeat(60))
  await t.rejects(own.append('x'.repeat(60)), JournalFull)
  own.clear()
  const place = await own.append('short')
  await own.append('x'.repeat(60))
  t.equal(await own.read(place), 'short')
  const full = openJournals(t, await createFolder(t), { reserve: Number.MAX_SAFE_INTEGER })
  await t.rejects(full.own.append('{}'), JournalFull)
})

test('a line that the disk did not take is not found later, and the next one is', async (t) => {
  const dataDir = await createFolder(t)
  const { own, file } = openJournals(t, dataDir)
  await own.append('{"first":1}')
  // What a write that failed in its midst leaves.
  await appendFile(file, 'torn')
  const place = await own.append('{"second":2}')
  t.equal(await own.read(place), '{"second":2}')
  t.match(await readFile(file, 'utf8'), /^\w{8} \{"first":1\}\n\w{8} \{"second":2\}\n$/)
  await truncate(file, 0)
  await t.rejects(own.read(place))
})

test('a journal whose folder cannot be brought to the disk takes no line, holds no file open, and is made by the next line', async (t) => {
  const file = path.join(await createFolder(t), 'some.journal')
  const source = `
    import { openSync, closeSync } from 'node:fs'
    import { createJournalFile } from ${JSON.stringify(path.resolve(import.meta.dirname, '../../store/journal-file.ts'))}
    const journal = createJournalFile({ file: ${JSON.stringify(file)}, limit: 1e6, hasRoom: async () => true, prepare: async () => {} })
    const taken = []
    const takeAll = () => { try { for (;;) taken.push(openSync('/dev/null')) } catch {} }
    takeAll()
    closeSync(taken.pop())
    const error = await journal.append('{"first":1}').then(() => null, ({ code }) => code)
    const before = taken.length
    takeAll()
    const left = taken.length - before
    for (const one of taken) closeSync(one)
    await journal.append('{"second":2}')
    console.log(JSON.stringify({ error, left }))`
  const script = 'ulimit -n 64 && exec "$0" --input-type=module -e "$1"'
  const { stdout } = await run('/bin/sh', ['-c', script, process.execPath, source])
  t.same(JSON.parse(stdout), { error: 'EMFILE', left: 1 })
  t.match(await readFile(file, 'utf8'), /^\w{8} \{"second":2\}\n$/)
})

test('what is put aside is kept in a file for this user only', async (t) => {
  const { setAside } = openJournals(t, await createFolder(t))
  const file = await setAside(['{"a":1}'])
  await setAside(['{"b":2}'])
  t.equal(await readFile(file, 'utf8'), '{"a":1}\n{"b":2}\n')
})
