/** Work that is looked for again and again: no call to wake is lost, whenever it comes. */
import { test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { createRounds } from '../../actors/rounds/rounds.ts'
import { createQuietLog } from '../fake/quiet-log.ts'

test('who wakes a round in the moment in which it ends begins another one', async (t) => {
  for (let later = 0; later < 12; later += 1) {
    let looks = 0
    const wakeLater = async (): Promise<void> => {
      for (let turn = 0; turn < later; turn += 1) await Promise.resolve()
      rounds.wake()
    }
    const look = async (): Promise<boolean> => {
      looks += 1
      if (looks === 1) void wakeLater()
      return false
    }
    const rounds = createRounds({ clock: systemClock, log: createQuietLog(), every: 3_600_000, look })
    rounds.wake()
    await new Promise((resolve) => setImmediate(resolve))
    t.equal(looks, 2, `${later} microtasks after it had looked`)
    await rounds.close()
  }
})
