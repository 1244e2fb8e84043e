/** Owns `npm run simulate`: callers with a role against a worker, and whether what was expected of it came about. Exit code 1: it did not. */
import path from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { readEnvironment } from '../../app/config.ts'
import { openStage } from './open-stage.ts'
import { readScenarios, WrongScenario } from './read-scenario.ts'
import { faultText, runLine } from './report-text.ts'
import { runSuite } from './run-suite.ts'

const print = (text: string): void => void process.stdout.write(`${text}\n`)

const options = {
  url: { type: 'string' },
  key: { type: 'string' },
  sip: { type: 'string' },
  from: { type: 'string' },
  script: { type: 'string' },
  runs: { type: 'string', default: '1' },
  seed: { type: 'string', default: '1' },
  'at-once': { type: 'string', default: '1' },
  help: { type: 'boolean', default: false },
} as const

const own = path.join(import.meta.dirname, 'scenarios')

const usage = `npm run simulate -- [scenario.yaml or folder …] [--runs 1] [--seed 1] [--at-once 1]
  without a deployment: this version on embedded defaults, with the demo's worker: [--script <inbound call script>]
  against a deployment: --url <https://…> --key <vk_…> [--sip <host:port>] [--from <local address>]
  docs/simulate.md has the format of scenarios.`

class WrongUse extends Error {
  override readonly name = 'WrongUse'
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (values.help) {
    print(usage)
    return 0
  }
  const [count, seed, atOnce] = [
    wholeNumber(values, 'runs'),
    wholeNumber(values, 'seed'),
    wholeNumber(values, 'at-once'),
  ]
  const { url, key } = values
  if ((url === undefined) !== (key === undefined)) throw new WrongUse('--url and --key go together')
  if (url !== undefined && values.script !== undefined) throw new WrongUse('--script is for a service of our own')
  const scenarios = await readScenarios(positionals.length > 0 ? positionals : [own])
  await using closing = new AsyncDisposableStack()
  const stage = await openStage(
    {
      deployment: url !== undefined && key !== undefined ? { url, key } : null,
      sip: values.sip ?? null,
      from: values.from ?? null,
      scriptFile: values.script,
      settings: settingsOf(readEnvironment()),
      signal: endingSignal(),
    },
    closing,
  )
  const seeds = Array.from({ length: count }, (_, index) => seed + index)
  const runs = await runSuite(stage, {
    scenarios,
    seeds,
    atOnce,
    ended(run) {
      print(runLine(run))
      for (const fault of run.faults) print(faultText(fault))
    },
  })
  const passed = runs.filter((run) => run.passed).length
  const wanted = scenarios.length * count
  print(`${passed} of ${wanted} runs passed`)
  return passed === wanted ? 0 : 1
}

/** Voice providers of the environment are for the service of our own too; its folders and ports are its own. */
const settingsOf = (environment: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(
    Object.entries(environment).filter(([name]) =>
      /^(OPENAI|GEMINI|CASCADE|VOICE|EMBEDDED|MEDIA_THREADS|LOG_LEVEL)/.test(name),
    ),
  )

/** The first Ctrl-C ends calls in order; the second one is from somebody who does not want to wait. */
function endingSignal(): AbortSignal {
  const ending = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => {
      if (ending.signal.aborted) process.exit(130)
      print('\nCalls are ended …')
      ending.abort()
    })
  return ending.signal
}

function wholeNumber(values: Readonly<Record<string, unknown>>, name: 'runs' | 'seed' | 'at-once'): number {
  const value = Number(values[name])
  if (!Number.isInteger(value) || value < 1 || value > 1_000_000)
    throw new WrongUse(`--${name} must be a whole number from 1 on`)
  return value
}

function explanationOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const isOfUse = error instanceof WrongUse || ('code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))
  if (isOfUse) return `${error.message}\n${usage}`
  return error instanceof WrongScenario ? error.message : (error.stack ?? error.message)
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${explanationOf(error)}\n`)
    process.exit(2)
  },
)
