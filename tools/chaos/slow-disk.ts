/**
 * Owns how slow the disk of one process of a run is: loaded in front of the service (`node --import`) in each of its threads, it has every write to a file
 * that is open, and every flush of one, wait as long as the file DISK_DELAY_FILE says. What a file is asked goes on in order. Threads of the library below
 * do not stand still, as those of a real disk would; the database has a disk of its own.
 */
import { readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { readEnvironment } from '../../app/config.ts'

type Work = (...given: unknown[]) => Promise<unknown>

const slowed = ['write', 'writev', 'writeFile', 'appendFile', 'datasync', 'sync'] as const
const lookEvery = 250

const { DISK_DELAY_FILE: delayFile } = readEnvironment()

if (delayFile !== undefined) await slowDown(delayFile)

async function slowDown(file: string): Promise<void> {
  const handle = await open(import.meta.filename, 'r')
  const prototype = Object.getPrototypeOf(handle) as Record<(typeof slowed)[number], Work>
  await handle.close()
  let [delayMs, lookedAt] = [0, -Infinity]
  const delay = (): number => {
    if (performance.now() - lookedAt < lookEvery) return delayMs
    lookedAt = performance.now()
    delayMs = delayIn(file)
    return delayMs
  }
  /** Of each file: when the last that it was asked has begun. */
  const turns = new WeakMap<object, Promise<unknown>>()
  for (const name of slowed) {
    const real = prototype[name]
    prototype[name] = async function slow(this: object, ...given: unknown[]) {
      const [before, ms] = [turns.get(this), delay()]
      if (ms === 0 && before === undefined) return real.apply(this, given)
      const turn = Promise.resolve(before).then(() => pause(ms))
      turns.set(this, turn)
      await turn
      if (turns.get(this) === turn) turns.delete(this)
      return real.apply(this, given)
    }
  }
}

/** 0 until a run has said anything. */
function delayIn(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8'))
  } catch {
    return 0
  }
}
