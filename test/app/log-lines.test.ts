/** A log that cannot be written: its process goes on with its work, keeps no more than a bound of it, and ends when it is to. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open } from 'node:fs/promises'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { test, type Test } from 'tap'

const source = `
  import { createLog } from ${JSON.stringify(path.resolve(import.meta.dirname, '../../app/log.ts'))}
  const log = createLog('info')
  const fields = { text: 'x'.repeat(1000) }
  let line = 0
  const logs = (lines) => { for (const end = line + lines; line < end; line++) log.info('line', { line, ...fields }) }
  process.on('message', (lines) => (logs(lines), setTimeout(() => process.send(process.memoryUsage().rss), 300)))
  process.on('disconnect', () => (logs(3), process.exit(7)))`

/** `stderr`: where its log goes. */
function start(t: Test, stderr: number | 'pipe') {
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['ignore', 'ignore', stderr, 'ipc'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  return {
    stderr: child.stderr as Readable,
    /** The bytes that it has, a while after it has logged so many lines more. */
    async logs(lines: number) {
      child.send(lines)
      return ((await once(child, 'message')) as [number])[0]
    },
    async ends() {
      child.disconnect()
      return (await once(child, 'exit'))[0] as unknown
    },
  }
}

type Line = { readonly msg: string; readonly line?: number; readonly lines?: number }
const linesIn = (text: string): Line[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line)

test('a process whose log meets a full disk works on, and ends', async (t) => {
  const full = await open('/dev/full', 'w')
  t.teardown(() => full.close())
  const process = start(t, full.fd)
  t.ok(await process.logs(1_000))
  t.ok(await process.logs(1_000))
  t.equal(await process.ends(), 7)
})

test('so does one whose log has no reader any more', async (t) => {
  const process = start(t, 'pipe')
  await process.logs(10)
  process.stderr.destroy()
  t.ok(await process.logs(1_000))
  t.ok(await process.logs(1_000))
  t.equal(await process.ends(), 7)
})

test('a file has all lines of its process in order, the last words too', async (t) => {
  const file = await open(path.join(t.testdir({}), 'log'), 'a+')
  t.teardown(() => file.close())
  const process = start(t, file.fd)
  await process.logs(1_000)
  t.equal(await process.ends(), 7)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(2 << 20), 0, 2 << 20, 0)
  t.same(
    linesIn(buffer.toString('utf8', 0, bytesRead)).map(({ line }) => line),
    Array.from({ length: 1_003 }, (_, line) => line),
  )
})

test('a reader that does not read holds nobody up, not the end either; once it reads it gets whole lines in order, and is told how many are lost', async (t) => {
  const process = start(t, 'pipe')
  const before = await process.logs(1_000)
  const more = (await process.logs(40_000)) - before
  t.ok(more < 150 << 20, `${more >> 20} MiB more`)
  let text = ''
  process.stderr.setEncoding('utf8').on('data', (some: string) => (text += some))
  while (!text.includes('are lost')) await once(process.stderr, 'data')
  await process.logs(5)
  const ended = once(process.stderr, 'end')
  t.equal(await process.ends(), 7)
  await ended
  const all = linesIn(text)
  const told = all.flatMap(({ line }) => (line === undefined ? [] : [line]))
  t.same(
    told,
    [...new Set(told)].toSorted((a, b) => a - b),
    'each once, in order',
  )
  t.equal(told.at(-1), 41_007, 'the last words too')
  const lost = all.reduce((sum, { lines = 0 }) => sum + lines, 0)
  t.ok(lost > 30_000)
  t.equal(told.length + lost, 41_008)

  const unread = start(t, 'pipe')
  await unread.logs(1_000)
  t.equal(await unread.ends(), 7)
})
