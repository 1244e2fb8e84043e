/**
 * The short set of CI: a caller of the demo, the scenario that is made of its call, and the same scenario against a demo whose script was broken on purpose.
 * The service is one of the tool's own.
 */
import { readFile } from 'node:fs/promises'
import t, { test } from 'tap'
import { openStage } from '../../tools/simulate/open-stage.ts'
import { parseScenario, readScenarios, type ReadScenario } from '../../tools/simulate/read-scenario.ts'
import type { Stage } from '../../tools/simulate/run-call.ts'
import { runSuite, type Run } from '../../tools/simulate/run-suite.ts'
import { writeScenarioOf } from '../../tools/simulate/from-call.ts'
import { createFolder } from '../scenes/folder.ts'
import { soundThreads } from '../scenes/sound-threads.ts'

const folder = await createFolder(t)
const script = new URL('../../tools/start/demo/inbound-call-script.txt', import.meta.url)
const signal = new AbortController().signal

const declines = `
simulation: 1
name: Wants no table
caller: { voice: rms }
turns:
  - hear: book a table
    say: 'no'
expect:
  outcome: completed
  endedBy: agent
  nextAction: nothing_to_do
  dimensions: { wants_table: false }
  transcript: [{ agent: welcome to Parley }, { agent: that is fine }]
  webhooks: [call.status_update in_progress, call.transcript, call.status_update completed, call.ended]
`

const faultsOf = ({ faults }: Run): string => JSON.stringify(faults)

const toWorker =
  (worker: string) =>
  (read: ReadScenario): ReadScenario => ({ ...read, scenario: { ...read.scenario, worker } })

/** A worker beside the demo's, with its script but for what is said to who wants no table; its name. */
async function breakDemo({ deployment }: Stage): Promise<string> {
  const name = 'Broken demo'
  const { id } = await deployment.worker(undefined)
  const config = await deployment.ask('GET', `/workers/${id}/config`)
  const { nextActions, dimensions } = config as Readonly<Record<string, unknown>>
  const wish = { name, language: 'en', config: { llmProvider: 'embedded', voiceId: 'rms', nextActions, dimensions } }
  const worker = (await deployment.ask('POST', '/workers', wish)) as { readonly id: string }
  const before = 'end (nothing_to_do): That is fine. Thank you for calling, and goodbye.'
  const text = await readFile(script, 'utf8')
  if (!text.includes(before)) throw new Error('the script of the demo is another one')
  const broken = text.replace(before, 'end (call_back): We shall call you back tomorrow. Goodbye.')
  const document = { title: 'Broken', text: broken, tagKeys: ['inbound_call_script'], workerIds: [worker.id] }
  await deployment.ask('POST', '/documents', document)
  return name
}

test(
  'a scenario made of a call of the demo passes against the demo, and fails where its script was broken on purpose',
  { timeout: 200_000 },
  async (t) => {
    const closing = new AsyncDisposableStack()
    t.teardown(() => closing.disposeAsync())
    const settings = { ...soundThreads(), LOG_LEVEL: 'silent' }
    const stage = await openStage({ deployment: null, sip: null, from: null, settings, signal }, closing)
    const suite = { seeds: [1], atOnce: 1, ended: () => undefined }
    const browser = { file: 'declines.yaml', folder, scenario: parseScenario(declines, 'declines.yaml') }
    const telephone = { ...browser, scenario: { ...browser.scenario, line: 'sip' as const } }
    const [web, phone] = await Promise.all([
      runSuite(stage, { ...suite, scenarios: [browser] }),
      runSuite(stage, { ...suite, scenarios: [telephone] }),
    ])
    for (const run of [...web, ...phone]) t.ok(run.passed, `${run.scenario}: ${faultsOf(run)}`)

    const { url, key } = stage.deployment
    const wish = { deployment: { url, key }, folder, keepsVoice: true }
    const read = await readScenarios([await writeScenarioOf({ ...wish, callId: web[0]?.callId ?? '' })])
    const turns = [{ say: /no/, hear: /book a table/, sound: /\.wav$/ }]
    t.match(read[0]?.scenario.turns, turns, 'in the voice of its caller')
    const elsewhere = read.map(toWorker(await breakDemo(stage)))
    const [again, broken] = await Promise.all([
      runSuite(stage, { ...suite, scenarios: read }),
      runSuite(stage, { ...suite, scenarios: elsewhere }),
    ])
    t.equal(again.length, 1)
    for (const run of again) t.ok(run.passed, `against the demo: ${faultsOf(run)}`)
    const faults = broken[0]?.faults ?? []
    t.match(
      faults.find(({ field }) => field.startsWith('expect.transcript.')),
      { wanted: /That is fine/, got: /call you back tomorrow/ },
    )
    t.match(
      faults.find(({ field }) => field === 'expect.nextAction'),
      { wanted: '"nothing_to_do"', got: '"call_back"' },
    )
  },
)
