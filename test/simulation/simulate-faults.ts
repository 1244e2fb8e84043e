/**
 * Owns `npm run simulate-faults`: many worlds, each by a seed of its own, and what failed in them, shrunk; or one of them, line by line, or again and again
 * with a crash before each of its steps. Ends with 1 when something that must always be true is not.
 */
import { availableParallelism } from 'node:os'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { planOf } from './plan.ts'
import { runSeeds } from './run-seeds.ts'
import { shrink } from './shrink.ts'
import { openStage } from './stage.ts'
import { simulate, type Outcome } from './world.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    /** `60-260`: of one seed without its faults, a node dies before each of these steps, in a world of its own. */
    crashes: { type: 'string' },
    processes: { type: 'string', default: String(availableParallelism()) },
  },
})

const tell = ({ plan, violations, hash, steps, age }: Omit<Outcome, 'notes'>): void => {
  const { seed, nodes, calls, faults } = plan
  const what = `${nodes} nodes, ${calls.length} calls, ${faults.length} faults; ${steps} steps in ${Math.round(age / 1000)} s`
  console.log(`seed ${seed}: ${what}; trace ${hash}${violations.length === 0 ? '' : '; FAILED'}`)
  for (const violation of violations) console.log(`  ${violation}`)
}
const tellSmallest = (smallest: Omit<Outcome, 'notes'>): void => {
  console.log(`  the smallest world that fails:\n${JSON.stringify(smallest.plan, null, 1)}`)
  for (const violation of smallest.violations) console.log(`  ${violation}`)
}

async function one(seed: number): Promise<boolean> {
  const stage = await openStage()
  try {
    const outcome = await simulate(planOf(seed), stage, values.trace)
    for (const line of outcome.notes) console.log(line)
    tell(outcome)
    if (outcome.violations.length === 0) return true
    tellSmallest(await shrink(outcome, stage))
    return false
  } finally {
    await stage.close()
  }
}

/** Nodes hear each other, so that another one has the call before its caller has had enough. */
async function crashing(seed: number, steps: string): Promise<boolean> {
  const [first = NaN, last = NaN] = steps.split('-').map(Number)
  if (!(first <= last)) throw new Error('--crashes must be like 60-260')
  const stage = await openStage()
  const plan = planOf(seed)
  let [worlds, failed] = [0, 0]
  try {
    for (let step = first; step <= last; step++)
      for (let node = 0; node < plan.nodes; node++) {
        const crash = { kind: 'crash', node, step, downFor: 3_000 } as const
        const outcome = await simulate({ ...plan, hasBeats: true, faults: [crash] }, stage)
        worlds++
        if (outcome.violations.length === 0) continue
        failed++
        console.log(`node ${node} dies before step ${step}:`)
        tell(outcome)
      }
  } finally {
    await stage.close()
  }
  console.log(`${worlds} worlds, ${failed} failed`)
  return failed === 0
}

async function many(from: number, count: number): Promise<boolean> {
  const began = performance.now()
  let [failed, steps, age] = [0, 0, 0]
  const seeds = Array.from({ length: count }, (_, index) => from + index)
  await runSeeds(seeds, Number(values.processes), (answer) => {
    steps += answer.steps
    age += answer.age
    if (!answer.smallest) return
    failed++
    tell(answer)
    tellSmallest(answer.smallest)
    console.log(`  once more: npm run simulate-faults -- --seed ${answer.plan.seed} --trace`)
  })
  const took = (performance.now() - began) / 1000
  console.log(
    `${count} worlds of ${Math.round(age / 3_600_000)} h in ${took.toFixed(0)} s, ${steps} steps; ${failed} failed`,
  )
  return failed === 0
}

const { seed, crashes } = values
const of = (given: string): Promise<boolean> =>
  crashes === undefined ? one(Number(given)) : crashing(Number(given), crashes)
const isWell = await (seed === undefined ? many(Number(values.from), Number(values.seeds)) : of(seed))
process.exitCode = isWell ? 0 : 1
