/** docs/contract/rest.md "Simulations": what came of simulated callers is kept for the account, the newest of it, as long as transcripts. */
import { test } from 'tap'
import type { Measure } from '../../tools/simulate/measures.ts'
import { keepInDeployment, simulationOf } from '../../tools/simulate/keep-in-deployment.ts'
import { measureNames } from '../../tools/simulate/scenario.ts'
import type { Results } from '../../tools/simulate/results.ts'
import { forgetSimulations } from '../../store/simulations.ts'
import { openSeededApi, start } from '../scenes/seeded-api.ts'

const noMeasure: Omit<Measure, 'samples'> = { value: null, events: 0, reason: 'there was no call' }

function resultsWith(runs: Results['runs']): Results {
  const measures = Object.fromEntries(measureNames.map((name) => [name, noMeasure])) as Results['measures']
  const passed = runs.filter((run) => run.passed).length
  const scenarios = [{ name: 'Books a table', runs: runs.length, passed, passAll: [passed / runs.length] }]
  return {
    version: 1,
    at: '2026-01-01T11:59:00.000Z',
    url: 'https://calls.example',
    seeds: [1, 2],
    scenarios,
    measures,
    runs,
  }
}

const run = (seed: number, text: string | null, callId: string | null = null): Results['runs'][number] => ({
  scenario: 'Books a table',
  file: 'a.yaml',
  seed,
  passed: text === null,
  callId,
  faults: text === null ? [] : [{ field: 'expect.outcome', wanted: text, got: text, atMs: null }],
  measures: null,
  transcript: [],
})

test('results of simulated callers', async (t) => {
  const { ask, own, other, sql } = await openSeededApi(t)
  const path = `/v1/accounts/${own.id}/simulations`
  const deployment = {
    url: 'https://calls.example',
    async ask(method: string, below: string, json?: unknown) {
      const answer = await ask(`/v1/accounts/${own.id}${below}`, { method, json })
      if (answer.status !== 200) throw new Error(answer.text)
      return answer.json as unknown
    },
  }

  await t.test('npm run simulate gives them to the account, failures first and without what was said', async (t) => {
    const results = resultsWith([run(1, null, own.callId), run(2, 'completed')])
    t.match(await keepInDeployment(deployment, results), /https:\/\/calls\.example\/console\/simulations$/)
    const { data } = (await ask(path)).json
    t.match(data, [{ ranAt: results.at, target: results.url, runCount: 2, passedCount: 1 }])
    const { json } = await ask(`${path}/${data[0].id}`)
    t.match(json, {
      scenarios: [{ name: 'Books a table', runs: 2, passed: 1, passAll: [0.5] }],
      runs: [
        { seed: 2, passed: false, faults: [{ field: 'expect.outcome', wanted: 'completed' }] },
        { seed: 1, passed: true, callId: own.callId },
      ],
    })
    t.equal(json.measures.length, measureNames.length)
    t.equal((await ask(`/v1/accounts/${other.id}/simulations/${data[0].id}`, { key: other.key })).status, 404)
  })

  await t.test('however many runs there are, it fits', async (t) => {
    const many = Array.from({ length: 3_000 }, (_, seed) => run(seed, '\u20ac'.repeat(5_000)))
    const request = simulationOf(resultsWith(many))
    t.ok(Buffer.byteLength(JSON.stringify(request)) < 1_000_000)
    t.ok(request.runs.length > 50 && request.runs.length < 500)
    t.match(await keepInDeployment(deployment, resultsWith(many)), /^Kept/)
  })

  await t.test('what cannot be is refused by the name of its field, and the tool says so', async (t) => {
    const good = simulationOf(resultsWith([run(1, null)]))
    const refused = async (change: object) => {
      const { status, json } = await ask(path, { method: 'POST', json: { ...good, ...change } })
      return [status, json.issues?.[0]?.path]
    }
    t.same(await refused({ ranAt: 'yesterday' }), [400, 'ranAt'])
    t.same(await refused({ scenarios: [{ name: 'A', runs: 1, passed: 2, passAll: [] }] }), [400, 'scenarios.0.passed'])
    t.same(await refused({ runs: [{ ...good.runs[0], callId: 'x' }] }), [400, 'runs.0.callId'])
    const broken = { ...deployment, ask: () => Promise.reject(new Error('404: nothing here')) }
    t.match(await keepInDeployment(broken, resultsWith([run(1, null)])), /does not keep them: 404: nothing here/)
  })

  await t.test('the newest fifty stay, until they are deleted or as old as transcripts may be', async (t) => {
    for (let seed = 0; seed < 51; seed++) await keepInDeployment(deployment, resultsWith([run(seed, null)]))
    const { data, nextCursor } = (await ask(`${path}?limit=49`)).json
    const rest = (await ask(`${path}?limit=49&cursor=${nextCursor}`)).json
    t.same([data.length, rest.data.length, rest.nextCursor], [49, 1, null])
    t.equal((await ask(`${path}/${data[0].id}`, { method: 'DELETE' })).status, 204)
    t.equal((await ask(`${path}/${data[0].id}`, { method: 'DELETE' })).status, 404)
    await forgetSimulations(sql, { accountId: own.id, before: start })
    t.equal((await ask(path)).json.data.length, 20, 'those of this moment stay')
    await forgetSimulations(sql, { accountId: own.id, before: start + 1 })
    t.same((await ask(path)).json.data, [])
  })
})
