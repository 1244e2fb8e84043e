/** What simulated callers leave behind, and what they are made of: results, reports, scenarios of finished calls, callers played by a model. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises'
import { stringify } from 'yaml'
import { test } from 'tap'
import { wavHeaderOf } from '../../media/recording/wav.ts'
import { actOf, replyOf } from '../../tools/simulate/chat-caller.ts'
import { measuresOf } from '../../tools/simulate/measures.ts'
import { parseScenario } from '../../tools/simulate/read-scenario.ts'
import { reportHtml } from '../../tools/simulate/report-html.ts'
import { differencesOf, measureText, resultsOf } from '../../tools/simulate/results.ts'
import { readLastResults, writeResults } from '../../tools/simulate/results-folder.ts'
import type { Run } from '../../tools/simulate/run-suite.ts'
import { scenarioOf } from '../../tools/simulate/scenario-of-call.ts'
import type { FinishedCall } from '../../tools/simulate/finished-call.ts'
import { createFolder } from '../scenes/folder.ts'

const hostile = `</td><script>alert("x")</script>&'`
const track = {
  marks: [{ kind: 'say', text: hostile, from: 60, to: 90 }] as const,
  caller: Array.from({ length: 200 }, (_, tick) => (tick >= 60 && tick < 90 ? 4_000 : 0)),
  agent: Array.from({ length: 200 }, (_, tick) => (tick < 40 || tick > 120 ? 4_000 : 0)),
}
const run = (seed: number, passed: boolean): Run => ({
  scenario: hostile,
  file: 'a.yaml',
  seed,
  passed,
  callId: 'c',
  faults: passed ? [] : [{ field: 'turns.0', wanted: hostile, got: hostile, atMs: 2_000 }],
  measures: measuresOf(track, []),
  track,
  transcript: [{ speaker: 'agent', text: hostile }],
})
const what = { at: '2027-01-02T03:04:05.678Z', url: 'this version', seeds: [1, 2, 3] }

test('pass^k is how likely so many runs all pass, and a share of few events is not shown', (t) => {
  const results = resultsOf([run(1, true), run(2, true), run(3, false)], what)
  t.match(results.scenarios, [{ runs: 3, passed: 2, passAll: [2 / 3, 1 / 3, 0] }])
  t.equal(results.measures.responseRate.events, 3)
  t.match(measureText('responseRate', results.measures.responseRate), /too few to tell \(3\)/)
  t.equal(measureText('responseLatency', results.measures.responseLatency), '620 ms (3)')
  t.match(measureText('yieldRate', results.measures.yieldRate), /^none: the caller did not interrupt/)
  t.end()
})

test('what was said is shown as text in a report that needs and runs nothing', (t) => {
  const runs = [run(1, false), run(2, true)]
  const html = reportHtml(resultsOf(runs, what), runs, null)
  t.notMatch(html, /<script/)
  t.match(html, /&lt;script&gt;/)
  t.match(html, /default-src 'none'/)
  t.equal(html.match(/<svg/g)?.length, 1, 'the waveform of the run that failed')
  t.match(html, /M600 0V/, 'the fault is where it was: at half of four seconds')
  t.notMatch(html, /(?:src|href)=/)
  t.end()
})

test('results are kept for their user alone, the newest are compared, and one that was cut is passed over', async (t) => {
  const folder = await createFolder(t)
  t.equal(await readLastResults(folder), null)
  const before = resultsOf([run(1, true)], what)
  const kept = await writeResults(folder, before, '<html>')
  t.equal((await stat(path.join(kept, 'results.json'))).mode & 0o077, 0)
  await mkdir(path.join(folder, '2027-01-02T03-04-06-000Z'))
  await writeFile(path.join(folder, '2027-01-02T03-04-06-000Z', 'results.json'), '{"version": 1, ')
  const last = await readLastResults(folder)
  t.same(last, JSON.parse(JSON.stringify(before)))
  const now = resultsOf([run(1, false)], what)
  t.match(last && differencesOf(last, now), [{ what: hostile, before: '1 of 1 passed', now: '0 of 1 passed' }])
  t.same(differencesOf(now, now), [])
  for (let second = 10; second < 65; second++)
    await writeResults(folder, { ...now, at: `2027-01-02T04:${second}:00.000Z` }, '')
  t.equal((await readdir(folder)).length, 50)
})

/** A recording of two channels with sound where stretches of seconds say so. */
function recordingOf(seconds: number, agent: readonly [number, number][], caller: readonly [number, number][]): Buffer {
  const rateHz = 16_000
  const samples = new Int16Array(seconds * rateHz * 2)
  for (const [channel, stretches] of [agent, caller].entries())
    for (const [from, to] of stretches)
      for (let at = from * rateHz; at < to * rateHz; at++) samples[2 * at + channel] = at % 2 === 0 ? 6_000 : -6_000
  const body = Buffer.from(samples.buffer)
  return Buffer.concat([wavHeaderOf({ rateHz, channels: 2 }, body.length), body])
}

const finished: FinishedCall = {
  call: {
    id: 'c1',
    status: 'completed',
    direction: 'inbound',
    postProcessingStatus: 'completed',
    workerId: 'w',
    transport: 'sip_trunk',
    fromNumber: '+12025550142',
    outcome: 'completed',
    endedBy: 'caller',
    nextAction: 'undetermined',
    dimensions: { drink: 'tea' },
  },
  workerName: 'Parley demo',
  turns: [
    { role: 'agent', text: 'Hello. Would you like a table?', from: 0, to: 4_000 },
    { role: 'user', text: 'yes please', from: 5_000, to: 6_000 },
    { role: 'agent', text: 'Which drink may we have', from: 7_000, to: 9_000 },
    { role: 'user', text: 'tea', from: 8_500, to: 9_500 },
    { role: 'agent', text: 'How many are you?', from: 11_000, to: 12_000 },
    { role: 'user', text: '4', from: 13_000, to: 13_000 },
    { role: 'agent', text: 'Thank you. Anything el', from: 15_000, to: 17_000 },
  ],
  tools: [{ name: 'note', arguments: { drink: 'tea' } }],
  recording: recordingOf(
    18,
    [
      [0, 4],
      [7, 9],
      [11, 12],
      [15, 17],
    ],
    [
      [5, 6],
      [8.5, 9.5],
    ],
  ),
}

test('a finished call becomes a scenario: its words in its voice, an interruption at its moment, keys, and what came of it', (t) => {
  const { scenario, sounds } = scenarioOf(finished, { name: 'As then', worker: 'Parley demo', keepsVoice: true })
  t.match(scenario, { line: 'sip', worker: 'Parley demo', caller: { number: '+12025550142' } })
  t.same(scenario['turns'], [
    { say: 'yes please', hear: 'Would you like a table?', sound: 'c1-1.wav' },
    { interrupt: 'tea', after: 1_500, again: 'Which drink may we have', sound: 'c1-2.wav' },
    { keys: '4', hear: 'How many are you?' },
    { hangUp: true, hear: 'Anything el' },
  ])
  t.same(
    [...sounds.values()].map((sound) => sound.length / 16_000),
    [1.2, 1.2],
    'with a tenth of a second around it',
  )
  t.match(scenario['expect'], {
    outcome: 'completed',
    endedBy: 'caller',
    dimensions: { drink: 'tea' },
    tools: [{ name: 'note' }],
    transcript: [{ agent: 'Hello. Would you like a table?' }, { agent: 'How many are you?' }, { agent: 'Thank you.' }],
  })
  t.ok(parseScenario(stringify(scenario), 'made.yaml'), 'and it can be read')
  const spoken = scenarioOf({ ...finished, recording: null }, { name: 'a', worker: null, keepsVoice: true })
  t.equal(spoken.sounds.size, 0)
  t.match(spoken.scenario['turns'], [{ say: 'yes please' }, { say: 'tea' }, { keys: '4' }])
  const unclear = { role: 'user', text: '[unclear]', from: 5_000, to: 6_000 } as const
  const heard = { ...finished, turns: [...finished.turns.slice(0, 1), unclear, ...finished.turns.slice(1)] }
  const silent = scenarioOf({ ...heard, recording: null }, { name: 'a', worker: null, keepsVoice: true })
  t.notMatch(JSON.stringify(silent.scenario), /unclear/, 'nobody says what was not understood')
  t.end()
})

test('a model that plays a caller may hang up, press keys and be silent, by a word in brackets that stands alone', (t) => {
  t.same(actOf('[hang up]'), { kind: 'hang up', text: '' })
  t.same(actOf(' [keys 12#] '), { kind: 'keys', text: '12#' })
  t.same(actOf('[silence]').kind, 'silence')
  t.same(actOf('Well,\n[hang up] is what I say'), { kind: 'say', text: 'Well, [hang up] is what I say' })
  t.equal(actOf('a'.repeat(5_000)).text.length, 400)
  t.end()
})

test('an endpoint that plays a caller is asked with its key, and what it answers wrong is told', async (t) => {
  const asked: unknown[] = []
  const answers = [
    [200, '{"choices":[{"message":{"role":"assistant","content":"Yes, please."}}]}'],
    [200, '{"choices":[]}'],
    [401, '{"error":"who are you"}'],
    [200, 'x'.repeat(300_000)],
  ] as const
  const server = createServer((request, response) => {
    const [status, text] = answers[asked.length]!
    let body = ''
    request.on('data', (bytes: Buffer) => (body += bytes.toString()))
    request.on('end', () => {
      asked.push([request.url, request.headers.authorization, JSON.parse(body)])
      response.writeHead(status, { 'content-type': 'application/json' }).end(text)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const chat = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`, model: 'm', key: 'k' }
  const messages = [{ role: 'user', content: 'A table?' }] as const
  t.equal(await replyOf(chat, messages), 'Yes, please.')
  t.same(asked, [['/v1/chat/completions', 'Bearer k', { model: 'm', messages }]])
  await t.rejects(replyOf(chat, messages), /no text/)
  await t.rejects(replyOf(chat, messages), /401.*who are you/)
  await t.rejects(replyOf(chat, messages), /over 262144 bytes/)
})
