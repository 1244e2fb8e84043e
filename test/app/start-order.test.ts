/** What is started when: the voices open while the database does, and nobody is answered before both are there. */
import { test, type Test } from 'tap'
import type { Engines } from '../../actors/call/engine-choice.ts'
import { startParley } from '../../app/parley.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { configOn } from '../scenes/config-on.ts'
import { openTestDatabase } from '../scenes/database.ts'

async function begin(t: Test, open: () => Promise<Engines>) {
  const config = configOn(await openTestDatabase(t))
  const seeded = Promise.withResolvers<void>()
  const seed = () => {
    seeded.resolve()
    return Promise.resolve(null)
  }
  const log = createQuietLog()
  return { seeded: seeded.promise, started: startParley({ config, log, engines: open(), seed }) }
}

test('the database is there before the voices are, and the service is there with both', async (t) => {
  const voices = Promise.withResolvers<Engines>()
  const { seeded, started } = await begin(t, () => voices.promise)
  await seeded
  voices.resolve(new Map([['embedded', createScriptedEngine()]]))
  const service = await started
  t.teardown(() => service.close())
  const health = await fetch(`${service.url}/health`)
  t.equal(health.status, 200)
})

test('voices that cannot be opened end the start with their own reason, however early they fail', async (t) => {
  const { started } = await begin(t, () => Promise.reject(new Error('no voice here')))
  await t.rejects(started, { message: 'no voice here' })
})
