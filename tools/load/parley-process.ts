/**
 * Owns the service that a load starts for itself, in a process of its own: as it ships, with the embedded voice and an account of its own, on free ports
 * and a folder that goes with it. Nothing of the environment but PATH and the like reaches it.
 */
import process from 'node:process'
import { systemClock } from '../../app/clock.ts'
import { readConfig } from '../../app/config.ts'
import { newId } from '../../app/core.ts'
import { createLog } from '../../app/log.ts'
import { startParley } from '../../app/parley.ts'
import { openEngines } from '../../app/voice-side.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { demoNumbers, seedDemo } from '../start/demo/seed-demo.ts'
import type { OwnServiceReady, OwnServiceWish } from './own-parley.ts'

const callsAtOnce = 10_000

async function main(wish: OwnServiceWish): Promise<void> {
  const config = readConfig({
    DATA_DIR: wish.dataDir,
    HOST: '127.0.0.1',
    PORT: '0',
    SELF_TEST: 'off',
    LOG_LEVEL: 'error',
    RATE_LIMIT_PER_ADDRESS: '0',
    RATE_LIMIT_PER_ACCOUNT: '0',
    ...wish.settings,
  })
  const log = createLog(config.logLevel)
  const voices = new AsyncDisposableStack()
  const { engines } = await openEngines(config, { log, clock: systemClock }, voices)
  let demo: Awaited<ReturnType<typeof seedDemo>> | null = null
  const service = await startParley({
    config,
    log,
    engines: Promise.resolve(engines),
    async seed(core) {
      demo = await seedDemo(core)
      const limits = core.sql.json({ maxConcurrentCalls: callsAtOnce })
      await core.sql`update accounts set config = config || ${limits} where id = ${demo.accountId}`
      return demo
    },
  })
  if (!demo) throw new Error('the account of the load was not made')
  const { accountId, workerId } = demo as Awaited<ReturnType<typeof seedDemo>>
  const made = { newId, now: systemClock.now() }
  const { key } = await createApiKey(service.sql, { accountId, name: 'Load', ...made })
  let ending: Promise<void> | null = null
  const end = (): void => {
    ending ??= service
      .close()
      .then(() => voices.disposeAsync())
      .finally(() => process.exit(0))
  }
  process.on('message', end)
  process.on('disconnect', end)
  // The load says when: its calls end first.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined)
  const ready: OwnServiceReady = {
    url: service.url,
    sipPort: service.sip?.port ?? 0,
    called: demoNumbers.inbound,
    key,
    accountId,
    workerId,
    pid: process.pid,
  }
  process.send?.(ready)
}

process.once('message', (wish: OwnServiceWish) => {
  main(wish).catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
    process.exit(1)
  })
})
