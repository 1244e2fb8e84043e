/**
 * A telephone holds a conversation of ten turns with every engine: real SIP and RTP, the whole service, and providers that speak their protocols. The
 * caller listens, answers each question, speaks into one, and a tool of the call is asked at its own address.
 */
import { test } from 'tap'
import { holdTenTurns } from '../scenes/ten-turns/caller.ts'
import { openTestPhone } from '../scenes/ten-turns/phone.ts'
import { everyEngine, openTenTurns } from '../scenes/ten-turns/stage.ts'

test('a telephone talks with every engine', { timeout: 170_000 }, async (t) => {
  const tenTurns = await openTenTurns(t)
  const { stage, speeches, lineOf, prove, end } = tenTurns
  const phone = await openTestPhone(t, stage)

  t.jobs = 2
  await Promise.all(
    everyEngine.map((engine) =>
      t.test(`${engine}: ten turns, one of them spoken into, and a tool`, { buffered: true }, async (t) => {
        await holdTenTurns(await phone.call(lineOf(engine)), speeches)
        await prove(t, engine)
      }),
    ),
  )
  // It is tried by 24 kHz, and talks in the law of the line.
  await end(t, { voice_provider_a: 2 })
})
