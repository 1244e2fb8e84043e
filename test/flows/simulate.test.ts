/**
 * The short set of CI: a caller of the demo, one whom a chat model plays, one whose worker asks a tool, the scenario that is made of a call, and the same
 * scenario against a demo whose script was broken on purpose. The service is one of the tool's own.
 */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t, { test, type Test } from 'tap'
import { openStage } from '../../tools/simulate/open-stage.ts'
import { parseScenario, readScenarios, type ReadScenario } from '../../tools/simulate/read-scenario.ts'
import type { Stage } from '../../tools/simulate/run-call.ts'
import { runSuite, type Run } from '../../tools/simulate/run-suite.ts'
import { writeScenarioOf } from '../../tools/simulate/from-call.ts'
import { createFolder } from '../scenes/folder.ts'
import { soundThreads } from '../scenes/sound-threads.ts'

const folder = await createFolder(t)
const script = new URL('../../tools/start/demo/inbound-call-script.txt', import.meta.url)
const examples = new URL('../../tools/simulate/examples/', import.meta.url)
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

const played = `
simulation: 1
name: Is played by a chat model
caller: { role: You want a table and lose patience when it comes to seats. }
expect:
  outcome: completed
  endedBy: caller
  dimensions: { wants_table: true }
  transcript: [{ agent: book a table }, { caller: 'yes' }, { agent: like to sit }]
`

/** An endpoint with OpenAI's chat completions, whose model knows the demo. Gives its URL, and what it was asked. */
async function openChat(t: Test) {
  const asked: { readonly key: string | undefined; readonly said: readonly string[] }[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const { messages } = JSON.parse(body) as { messages: { role: string; content: string }[] }
      asked.push({
        key: request.headers.authorization,
        said: messages.map(({ role, content }) => `${role}: ${content}`),
      })
      const content = answerTo(messages.at(-1)?.content ?? '')
      const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }]
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ choices }))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked }
}

function answerTo(agentSaid: string): string {
  if (/like to sit/i.test(agentSaid)) return '[hang up]'
  return /book a table/i.test(agentSaid) ? 'yes please' : '[silence]'
}

const faultsOf = ({ faults }: Run): string => JSON.stringify(faults)

const toWorker =
  (worker: string) =>
  (read: ReadScenario): ReadScenario => ({ ...read, scenario: { ...read.scenario, worker } })

/** The same call, of which other arguments of its tool are expected. */
const wantsOther = ({ scenario, ...read }: ReadScenario): ReadScenario => {
  const tools = [{ name: 'find_table', arguments: { seating: 'at the bar', guests: 5 } }]
  return { ...read, scenario: { ...scenario, expect: { ...scenario.expect, tools } } }
}

/** A worker beside the demo's, and like it but for its script; its name. */
async function addWorker({ deployment }: Stage, name: string, text: string): Promise<string> {
  const { id } = await deployment.worker(undefined)
  const config = await deployment.ask('GET', `/workers/${id}/config`)
  const { nextActions, dimensions } = config as Readonly<Record<string, unknown>>
  const wish = { name, language: 'en', config: { llmProvider: 'embedded', voiceId: 'rms', nextActions, dimensions } }
  const worker = (await deployment.ask('POST', '/workers', wish)) as { readonly id: string }
  const document = { title: name, text, tagKeys: ['inbound_call_script'], workerIds: [worker.id] }
  await deployment.ask('POST', '/documents', document)
  return name
}

/** The demo's script but for what is said to who wants no table. */
async function brokenScript(): Promise<string> {
  const before = 'end (nothing_to_do): That is fine. Thank you for calling, and goodbye.'
  const text = await readFile(script, 'utf8')
  if (!text.includes(before)) throw new Error('the script of the demo is another one')
  return text.replace(before, 'end (call_back): We shall call you back tomorrow. Goodbye.')
}

test(
  'a scenario made of a call of the demo passes against the demo, and fails where its script was broken on purpose',
  { timeout: 200_000 },
  async (t) => {
    const closing = new AsyncDisposableStack()
    t.teardown(() => closing.disposeAsync())
    const settings = { ...soundThreads(), LOG_LEVEL: 'silent' }
    const model = await openChat(t)
    const chat = { url: model.url, model: 'small', key: 'k' }
    const stage = await openStage({ deployment: null, sip: null, from: null, settings, signal, chat }, closing)
    const suite = { seeds: [1], atOnce: 1, ended: () => undefined }
    const browser = { file: 'declines.yaml', folder, scenario: parseScenario(declines, 'declines.yaml') }
    const telephone = { ...browser, scenario: { ...browser.scenario, line: 'sip' as const } }
    const role = { ...browser, scenario: parseScenario(played, 'played.yaml') }
    const [web, phone, acted] = await Promise.all([
      runSuite(stage, { ...suite, scenarios: [browser] }),
      runSuite(stage, { ...suite, scenarios: [telephone] }),
      runSuite(stage, { ...suite, scenarios: [role] }),
    ])
    for (const run of [...web, ...phone, ...acted]) t.ok(run.passed, `${run.scenario}: ${faultsOf(run)}`)

    t.ok(model.asked.every(({ key }) => key === 'Bearer k'))
    const said = model.asked.at(-1)?.said ?? []
    t.match(said[0], /^system: You want a table and/)
    t.match(said.at(-3), /^user: .*book a table/)
    t.equal(said.at(-2), 'assistant: yes please', 'the model is told the whole talk')

    const { url, key } = stage.deployment
    const wish = { deployment: { url, key }, folder, keepsVoice: true }
    const read = await readScenarios([await writeScenarioOf({ ...wish, callId: web[0]?.callId ?? '' })])
    const turns = [{ say: /no/, hear: /book a table/, sound: /\.wav$/ }]
    t.match(read[0]?.scenario.turns, turns, 'in the voice of its caller')
    const elsewhere = read.map(toWorker(await addWorker(stage, 'Broken demo', await brokenScript())))
    const toolScript = await readFile(new URL('asks-a-tool.txt', examples), 'utf8')
    const withTool = (await readScenarios([fileURLToPath(new URL('asks-a-tool.yaml', examples))])).map(
      toWorker(await addWorker(stage, 'Asks a tool', toolScript)),
    )
    const [again, broken, tool] = await Promise.all([
      runSuite(stage, { ...suite, scenarios: read }),
      runSuite(stage, { ...suite, scenarios: elsewhere }),
      runSuite(stage, { ...suite, scenarios: [...withTool, ...withTool.map(wantsOther)], atOnce: 2 }),
    ])
    t.equal(again.length, 1)
    for (const run of again) t.ok(run.passed, `against the demo: ${faultsOf(run)}`)
    t.ok(tool[0]?.passed, `with a tool: ${tool[0] && faultsOf(tool[0])}`)
    t.match(
      tool[1]?.faults,
      [{ field: /^expect\.tools\..*guests$/, wanted: '5', got: '4' }],
      'what it was called with is looked at',
    )
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
