/** What a recording keeps when its process is killed: docs/recordings.md "What a kill loses". */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'tap'
import { createFolder } from '../scenes/folder.ts'
import { parseWav } from '../scenes/parse-wav.ts'

const program = path.join(import.meta.dirname, '../scenes/recording-process.ts')

test('a process that is killed loses less than the last two seconds of its recording, whenever that is', async (t) => {
  const folder = await createFolder(t)
  // Between two writes, which come once a second: right behind one, in the middle, right before the next.
  const recorded = [3000, 3350, 3700, 4300].map(async (forMs, at) => {
    const key = `account/${at}.wav`
    const child = fork(program, [folder, key])
    let ms = 0
    const isOver = once(child, 'exit')
    child.on('message', (told) => {
      ms = told as number
      if (ms >= forMs) child.kill('SIGKILL')
    })
    await isOver
    return { ms, wav: parseWav(await readFile(path.join(folder, key))) }
  })
  for (const { ms, wav } of await Promise.all(recorded)) {
    const keptMs = wav.samples.length / 16
    t.match(wav, { rateHz: 16_000, channels: 1 })
    t.ok(keptMs > ms - 2000, `${keptMs} ms of ${ms}`)
    // A level that changes once a second rings for a few samples.
    const inTheMiddle = Array.from(
      { length: Math.floor(keptMs / 1000) },
      (_, second) => wav.samples[second * 16_000 + 8000],
    )
    t.same(
      inTheMiddle,
      inTheMiddle.map((_, second) => 1000 * (second + 1)),
      'and all of it is where it belongs',
    )
  }
})
