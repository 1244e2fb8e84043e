/** Owns `npm run chaos`: faults by lot against a cluster on this machine while calls talk, and what held. Exit code 1: something did not. */
import path from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { settingNames } from '../../app/config.ts'
import { countOptions, countsFrom } from '../cluster/counts.ts'
import { areSilencesJudged } from './judge.ts'
import { faultNames, type FaultName } from './plan.ts'
import { runKills } from './run-kills.ts'
import { runSeed } from './run-seed.ts'

const print = (text: string): void => void process.stdout.write(`${text}\n`)

const options = {
  ...countOptions,
  seeds: { type: 'string', default: '1' },
  minutes: { type: 'string', default: '60' },
  faults: { type: 'string', default: '' },
  kills: { type: 'string' },
  repeat: { type: 'string', default: '1' },
  calls: { type: 'string', default: '6' },
  turns: { type: 'string' },
  slack: { type: 'string', default: '300' },
  folder: { type: 'string', default: '.data/chaos' },
  help: { type: 'boolean', default: false },
} as const

const usage = `npm run chaos -- [--seeds 1,2,3] [--faults ${faultNames.slice(1, 4).join(',')},…] [--repeat 1] [--minutes 60] [--calls 6] [--turns 6] [--slack 300] [--folder .data/chaos]
npm run chaos -- --kills 500 [--seeds 1] [--minutes 60] [--calls 6] [--turns 1] [--folder .data/chaos]
  and how many processes of each kind, as npm run cluster: [--actors] [--gateways] [--sip] [--api] [--whole] [--nats]
  faults: ${faultNames.join(' ')}
  All of them come one after the other, and again as often as --repeat says. A seed repeats which faults come, when, how long and to whom. Log files and database stay in the folder.
  --kills n: calls come and go while so many processes are killed with -9, one about every two seconds, and every call is counted in the end.`

async function main(): Promise<void> {
  const { values } = parseArgs({ options })
  if (values.help) return print(usage)
  const seeds = seedsFrom(values.seeds)
  if (values.kills !== undefined) return process.exit((await countKills(values, seeds)) ? 0 : 1)
  const faults = Array.from({ length: wholeNumber(values, 'repeat') }, () => faultsFrom(values.faults)).flat()
  const [calls, turns, minutes] = [
    wholeNumber(values, 'calls'),
    wholeNumber({ turns: '6', ...values }, 'turns'),
    wholeNumber(values, 'minutes'),
  ]
  // A version that cannot split roles would run all of them in each process, and lines where nobody looks for them.
  const isWhole = !settingNames.includes('ROLES') && values.whole === '0'
  if (isWhole) print('This version does not know ROLES: three processes that have every role.')
  const counts = countsFrom(isWhole ? { ...values, whole: '3' } : values)
  const until = performance.now() + minutes * 60_000
  let [violations, unjudged] = [0, 0]
  for (const seed of seeds) {
    print(`\nseed ${seed}`)
    const slack = wholeNumber(values, 'slack')
    const folder = path.resolve(values.folder, `seed-${seed}-${process.pid}`)
    const reports = await runSeed({ seed, faults, counts, calls, turns, slack, folder, until, print })
    violations += reports.reduce((sum, report) => sum + report.violations.length, 0)
    unjudged += reports.filter((report) => !areSilencesJudged(report)).length
  }
  const but = unjudged === 0 ? '' : ` Silences of ${unjudged} rounds could not be judged.`
  print(`${violations === 0 ? 'Everything held.' : `${violations} violations.`}${but}`)
  process.exit(violations === 0 ? 0 : 1)
}

/** Three processes that run calls, where nothing is said: one is being started again while the next is killed. */
async function countKills(values: Values, seeds: readonly number[]): Promise<boolean> {
  const [kills, calls] = [wholeNumber(values, 'kills'), wholeNumber(values, 'calls')]
  const turns = wholeNumber({ turns: '1', ...values }, 'turns')
  const counts = countsFrom(values.actors === countOptions.actors.default ? { ...values, actors: '3' } : values)
  const until = performance.now() + wholeNumber(values, 'minutes') * 60_000
  let isGood = true
  for (const seed of seeds) {
    print(`\nseed ${seed}`)
    const folder = path.resolve(values.folder, `kills-${seed}-${process.pid}`)
    const report = await runKills({ seed, kills, counts, calls, turns, folder, until, print })
    const isWhole = report.kills.length === kills
    if (!isWhole) print(`The time was over after ${report.kills.length} of ${kills} kills.`)
    isGood &&= isWhole && report.violations.length === 0
  }
  print(isGood ? 'Everything held.' : 'Not everything held.')
  return isGood
}

function seedsFrom(text: string): number[] {
  const seeds = text.split(',').map(Number)
  if (seeds.some((seed) => !Number.isInteger(seed) || seed < 0))
    throw new Error('--seeds must be whole numbers with commas')
  return seeds
}

function faultsFrom(text: string): readonly FaultName[] {
  if (text === '') return faultNames
  const wanted = text.split(',')
  const unknown = wanted.filter((name) => !(faultNames as readonly string[]).includes(name))
  if (unknown.length > 0) throw new Error(`--faults: ${unknown.join(', ')} is none of ${faultNames.join(', ')}`)
  return wanted as FaultName[]
}

type Values = ReturnType<typeof parseArgs<{ readonly options: typeof options }>>['values']

type WholeNumber = 'repeat' | 'calls' | 'turns' | 'minutes' | 'slack' | 'kills'

function wholeNumber(values: Readonly<Record<string, unknown>>, name: WholeNumber): number {
  const value = Number(values[name])
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} must be a whole number from 1 on`)
  return value
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  process.exit(1)
})
