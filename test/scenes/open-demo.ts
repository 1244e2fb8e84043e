/** Owns the service as browsers of this machine find it after `npm start`: the demo account, its page and the console, on a database of its own. */
import { startParley, type Parley } from '../../app/parley.ts'
import type { VoiceEngine } from '../../model/voice-engine.ts'
import { seedDemo, type SeededDemo } from '../../tools/start/demo/seed-demo.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { configOn } from './config-on.ts'
import { openTestDatabase, type Teardown, type TestDatabase } from './database.ts'

export type DemoService = { readonly service: Parley; readonly demo: SeededDemo; readonly database: TestDatabase }

export async function openDemoService(t: Teardown, engine: VoiceEngine): Promise<DemoService> {
  const database = await openTestDatabase(t)
  const seeded = Promise.withResolvers<SeededDemo>()
  const service = await startParley({
    config: { ...configOn(database), demo: true },
    log: createQuietLog(),
    engines: new Map([['embedded', engine]]),
    seed: async (core) => {
      seeded.resolve(await seedDemo(core))
      return seeded.promise
    },
  })
  t.teardown(() => service.close())
  return { service, demo: await seeded.promise, database }
}
