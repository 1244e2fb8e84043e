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

test('rounds with a pace find together what comes up behind the first, hold up nobody who comes alone, and end at once when closed', async (t) => {
  let looks = 0
  let [more, seen] = [false, Promise.withResolvers<void>()]
  const look = async (): Promise<boolean> => {
    looks += 1
    seen.resolve()
    return more && looks < 5
  }
  const given = { clock: systemClock, log: createQuietLog(), every: 3_600_000, look }
  const paced = createRounds({ ...given, pace: 3_600_000 })
  paced.wake()
  await seen.promise
  t.equal(looks, 1, 'the first goes at once')
  for (let wakes = 0; wakes < 10; wakes++) {
    paced.wake()
    await new Promise((resolve) => setImmediate(resolve))
  }
  t.equal(looks, 1, 'the others wait for the next round')
  await paced.close()
  t.equal(looks, 1, 'which a close does not wait for')

  more = true
  seen = Promise.withResolvers<void>()
  const busy = createRounds({ ...given, pace: 5 })
  await busy.idle()
  t.equal(looks, 5, 'what was left behind is looked at again')
  await busy.idle()
  t.equal(looks, 6, 'and a round that is waited for comes at its pace')
  await busy.close()
})
