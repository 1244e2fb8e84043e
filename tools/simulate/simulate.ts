/** Owns `npm run simulate`: callers with a role against a worker, and whether what was expected of it came about. Exit code 1: it did not. */
import path from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { readEnvironment } from '../../app/config.ts'
import { Cannot, failureText, isWrongArgument } from '../cannot.ts'
import type { ChatEndpoint } from './chat-caller.ts'
import { endingSignal } from './ending-signal.ts'
import { writeScenarioOf } from './from-call.ts'
import { keepInDeployment } from './keep-in-deployment.ts'
import { openStage } from './open-stage.ts'
import { readScenarios } from './read-scenario.ts'
import { reportHtml } from './report-html.ts'
import { faultText, runLine, suiteText } from './report-text.ts'
import { differencesOf, resultsOf } from './results.ts'
import { makeResultsFolder, readLastResults, writeResults } from './results-folder.ts'
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
  folder: { type: 'string', default: '.data/simulate' },
  'chat-url': { type: 'string' },
  'chat-model': { type: 'string' },
  speak: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const
type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>['values']

const ownScenarios = path.join(import.meta.dirname, 'scenarios')

const usage = `npm run simulate -- [scenario.yaml or folder …] [--runs 1] [--seed 1] [--at-once 1] [--folder .data/simulate]
  without a deployment: this version on embedded defaults, with the demo's worker: [--script <inbound call script>]
  against a deployment: --url <https://…> --key <vk_…> [--sip <host:port>] [--from <local address>]
  callers with a role: --chat-url <https://…/v1> --chat-model <name>, and the key in SIMULATE_CHAT_KEY
npm run simulate -- from-call <callId> [--url … --key …] [--folder .data/simulate/calls] [--speak]
  makes a scenario of a finished call; --speak: in a voice of ours
docs/simulate.md has the format of scenarios.`

class WrongUse extends Cannot {
  override readonly name = 'WrongUse'
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (values.help) {
    print(usage)
    return 0
  }
  const [first, callId, surplus] = positionals
  if (first !== 'from-call') return simulate(values, positionals)
  if (callId === undefined || surplus !== undefined) throw new WrongUse('from-call wants the id of one call')
  const folder = values.folder === options.folder.default ? path.join(values.folder, 'calls') : values.folder
  const file = await writeScenarioOf({ callId, deployment: deploymentOf(values), folder, keepsVoice: !values.speak })
  print(`${file}\nnpm run simulate -- ${file}`)
  return 0
}

async function simulate(values: Values, named: readonly string[]): Promise<number> {
  const [count, seed] = [wholeNumber(values, 'runs'), wholeNumber(values, 'seed')]
  const deployment = deploymentOf(values)
  if (deployment && values.script !== undefined) throw new WrongUse('--script is for a service of our own')
  const scenarios = await readScenarios(named.length > 0 ? named : [ownScenarios])
  const environment = readEnvironment()
  const chat = chatOf(values, environment['SIMULATE_CHAT_KEY'] ?? null)
  const needy = scenarios.find(({ scenario }) => scenario.caller.role !== undefined)
  await makeResultsFolder(values.folder)
  if (needy && !chat) throw new WrongUse(`${needy.file}: caller.role: needs --chat-url and --chat-model`)
  await using closing = new AsyncDisposableStack()
  const stage = await openStage(
    {
      deployment,
      sip: values.sip ?? null,
      from: values.from ?? null,
      scriptFile: values.script,
      chat,
      settings: settingsOf(environment),
      signal: endingSignal(print),
    },
    closing,
  )
  const seeds = Array.from({ length: count }, (_, place) => seed + place)
  const runs = await runSuite(stage, {
    scenarios,
    seeds,
    atOnce: wholeNumber(values, 'at-once'),
    ended(run) {
      print(runLine(run))
      for (const fault of run.faults) print(faultText(fault))
    },
  })
  if (stage.signal.aborted) {
    print(`Ended early: ${runs.length} of ${scenarios.length * count} runs were over; nothing is kept`)
    return 130
  }
  const what = { at: new Date().toISOString(), url: deployment?.url ?? 'this version', seeds }
  const results = resultsOf(runs, what)
  const before = await readLastResults(values.folder)
  const differences = before && differencesOf(before, results)
  const kept = await writeResults(values.folder, results, reportHtml(results, runs, differences))
  print(suiteText(results, differences))
  if (deployment) print(await keepInDeployment(stage.deployment, results))
  const passed = runs.filter((run) => run.passed).length
  const wanted = scenarios.length * count
  print(`\n${passed} of ${wanted} runs passed; ${path.join(kept, 'report.html')}`)
  return passed === wanted ? 0 : 1
}

function deploymentOf({ url, key }: Values): { readonly url: string; readonly key: string } | null {
  if ((url === undefined) !== (key === undefined)) throw new WrongUse('--url and --key go together')
  if (url === undefined || key === undefined) return null
  if (!isHttp(url)) throw new WrongUse('--url must be an address such as https://calls.example')
  return { url, key }
}

function chatOf(values: Values, key: string | null): ChatEndpoint | null {
  const { 'chat-url': url, 'chat-model': model } = values
  if ((url === undefined) !== (model === undefined)) throw new WrongUse('--chat-url and --chat-model go together')
  if (url !== undefined && !isHttp(url))
    throw new WrongUse('--chat-url must be an address such as https://models.example/v1')
  return url === undefined || model === undefined ? null : { url, model, key }
}

const isHttp = (url: string): boolean => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)

/** Voice providers of the environment are for the service of our own too; its folders and ports are its own. */
const settingsOf = (environment: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(
    Object.entries(environment).filter(([name]) =>
      /^(OPENAI|GEMINI|CASCADE|VOICE|EMBEDDED|MEDIA_THREADS|LOG_LEVEL)/.test(name),
    ),
  )

function wholeNumber(values: Readonly<Record<string, unknown>>, name: 'runs' | 'seed' | 'at-once'): number {
  const value = Number(values[name])
  if (!Number.isInteger(value) || value < 1 || value > 1_000_000)
    throw new WrongUse(`--${name} must be a whole number from 1 on`)
  return value
}

function explanationOf(error: unknown): string {
  const isOfUse = error instanceof WrongUse || isWrongArgument(error)
  return isOfUse ? `${failureText(error)}\n\n${usage}` : failureText(error)
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${explanationOf(error)}\n`)
    process.exit(2)
  },
)
