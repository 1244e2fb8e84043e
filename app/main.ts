/** Owns `npm start`: starts the service, lets it call itself, says where it is, and ends it in order on SIGINT or SIGTERM. */
import process from 'node:process'
import { createEmbeddedEngine } from '../voice/engines/embedded/engine.ts'
import { systemClock } from './clock.ts'
import { readConfig, readEnvironment, WrongSettings, type Config } from './config.ts'
import { seedDemo, type SeededDemo } from './demo/seed-demo.ts'
import { createLog } from './log.ts'
import { reportOf } from './self-test/report.ts'
import { runSelfTest, type Speak } from './self-test/self-test.ts'
import { startParley, type Parley } from './parley.ts'

/** The caller of the self-test has another voice than the worker. */
const callerVoice = 'slt'

/** Where nothing is seeded. */
const firstSteps = 'Accounts, keys and workers: npm run admin. The reference of the API: /docs.'

const print = (text: string): void => void process.stdout.write(`${text}\n`)

async function main(): Promise<void> {
  const config = readConfig(readEnvironment())
  const log = createLog(config.logLevel)
  print('Parley is starting …')
  const engine = await createEmbeddedEngine({ log, clock: systemClock })
  let demo: SeededDemo | null = null
  const seed = async (sql: Parley['sql']) => (config.demo ? (demo = await seedDemo(sql, Date.now())) : null)
  const service = await startParley({ config, log, engines: new Map([['embedded', engine]]), seed })
  endOnSignal(async () => {
    print('\nParley ends its calls …')
    await service.close()
    await engine.close()
  })
  if (demo) await greet(service, config, demo, (text) => engine.speak(text, callerVoice))
  else print(`Parley listens on ${service.url}\n${firstSteps}`)
}

async function greet(service: Parley, config: Config, demo: SeededDemo, speak: Speak): Promise<void> {
  if (demo.apiKey) print(`\nThe key of the demo account, shown this once:\n  ${demo.apiKey}`)
  if (config.selfTest) {
    print('\nSelf-test: a web call to this service, with a synthetic caller …')
    print(await proof(service, demo, speak))
  }
  print(`\nCall it from a browser:\n  ${service.url}/\n`)
  print(`Or ask the API (${service.url}/docs shows all of it):`)
  print(`  curl -H 'x-api-key: ${demo.apiKey ?? '<your key>'}' ${service.url}/v1/accounts/current\n`)
}

/** A self-test that cannot run says why; the service runs all the same. */
async function proof(service: Parley, demo: SeededDemo, speak: Speak): Promise<string> {
  try {
    return reportOf(await runSelfTest(service, demo.accountId, speak))
  } catch (error) {
    return `self-test FAILED: ${explanationOf(error)}`
  }
}

/** The first signal ends in order; a second one at once. */
function endOnSignal(end: () => Promise<void>): void {
  let ending = false
  const onSignal = (signal: NodeJS.Signals): void => {
    if (ending) process.exit(128 + (signal === 'SIGINT' ? 2 : 15))
    ending = true
    end().then(
      () => process.exit(0),
      (error: unknown) => fail(error),
    )
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
}

/** What an operator can mend is said in a sentence; anything else with its stack. */
function fail(error: unknown): never {
  process.stderr.write(`${explanationOf(error)}\n`)
  process.exit(1)
}

function explanationOf(error: unknown): string {
  if (error instanceof WrongSettings) return error.message
  if (!(error instanceof Error)) return String(error)
  if ('code' in error && error.code === 'EADDRINUSE')
    return `The port is taken: ${error.message}. Set PORT to another one.`
  return error.stack ?? error.message
}

main().catch(fail)
