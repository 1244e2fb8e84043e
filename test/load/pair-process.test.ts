/** `npm run bench pair` as somebody runs it: the other state is measured and compared, and nothing of it stays, even when it is interrupted. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { makePairFolder } from './source-at.ts'

const root = path.resolve(import.meta.dirname, '../..')

/** Its temporary folder is ours, so that what is left in it is seen. */
function begin(t: Test, words: readonly string[]) {
  const temporary = mkdtempSync(path.join(tmpdir(), 'parley-test-'))
  t.teardown(() => rmSync(temporary, { recursive: true, force: true }))
  const child = spawn(process.execPath, ['test/load/bench.ts', 'pair', 'HEAD', ...words], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: temporary },
  })
  return { child, exited: once(child, 'exit'), lines: createInterface({ input: child.stdout }), temporary }
}

test('another state is measured in turns with this one, and its folder goes', async (t) => {
  const { exited, lines, temporary } = begin(t, ['rounds=1', 'echo', 'seconds=1', '2'])
  const printed: string[] = []
  for await (const line of lines) printed.push(line)
  t.strictSame(await exited, [0, null])
  const rows = printed.filter((line) => line.startsWith('| 2 bare echo'))
  const cost = rows.find((line) => line.includes('CPU ms per call-second'))
  t.match(cost, /\| +[\d.]+ \| +[\d.]+ \| +[\d.]+ \([\d.]+–[\d.]+\) \|$/, 'medians and the ratio with its spread')
  t.strictSame(readdirSync(temporary), [])
})

test('a pair that is interrupted ends what it has started and removes it', async (t) => {
  const { child, exited, lines, temporary } = begin(t, ['rounds=1', 'echo', 'seconds=600', '2'])
  for await (const line of lines) if (line.startsWith('round 1')) break
  t.equal(readdirSync(temporary).length, 1, 'the other state lies there')
  const group = await groupBelow(child.pid ?? 0)
  child.kill('SIGTERM')
  t.strictSame(await exited, [143, null])
  t.strictSame(readdirSync(temporary), [])
  t.throws(() => process.kill(-group, 0), { code: 'ESRCH' }, 'the bench and its processes are gone')
})

test('what a pair left behind that was killed goes with the next', async (t) => {
  const killed = begin(t, ['rounds=1', 'echo', 'seconds=600', '2'])
  for await (const line of killed.lines) if (line.startsWith('round 1')) break
  const group = await groupBelow(killed.child.pid ?? 0)
  killed.child.kill('SIGKILL')
  await killed.exited
  process.kill(-group, 'SIGKILL')
  const { temporary } = killed
  t.equal(readdirSync(temporary).length, 1)
  const before = process.env['TMPDIR']
  process.env['TMPDIR'] = temporary
  t.teardown(() => (before === undefined ? delete process.env['TMPDIR'] : (process.env['TMPDIR'] = before)))
  const own = await makePairFolder()
  t.strictSame(readdirSync(temporary), [path.basename(own)])
})

/** Of the bench that a pair runs: it is its only child, and becomes a group of its own a moment after it is there. Asked until it is one. */
async function groupBelow(parent: number): Promise<number> {
  for (;;) {
    const child = Number(readFileSync(`/proc/${parent}/task/${parent}/children`, 'latin1').trim())
    if (child > 0 && leadsGroup(child)) return child
    await setImmediate()
  }
}

function leadsGroup(child: number): boolean {
  try {
    process.kill(-child, 0)
    return true
  } catch {
    return false
  }
}
