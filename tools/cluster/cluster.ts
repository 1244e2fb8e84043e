/** Owns `npm run cluster`: starts the service as several processes on this machine, says where they are, and ends all of them on Ctrl-C. */
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { isOfNpm, settingNames } from '../../app/config.ts'
import { systemClock } from '../../app/clock.ts'
import { endWithProcess, printInAnyCase } from '../start/end-of-process.ts'
import { openCluster, type Cluster } from './open-cluster.ts'
import { countsFrom, countOptions } from './counts.ts'

const graceMs = 30_000
const print = (text: string): void => void process.stdout.write(`${text}\n`)

const usage = `npm run cluster -- [--actors 2] [--gateways 2] [--sip 2] [--api 1] [--whole 0] [--nats 1|3] [--folder .data/cluster]
  --whole n   n processes that have every role, in place of those of one role each`

async function main(): Promise<void> {
  printInAnyCase()
  const options = {
    ...countOptions,
    folder: { type: 'string', default: '.data/cluster' },
    help: { type: 'boolean' },
  } as const
  const { values } = parseArgs({ options })
  if (values.help) return print(usage)
  const counts = countsFrom(values)
  print('The cluster is starting …')
  let cluster: Cluster | null = null
  endWithProcess({ clock: systemClock, isOfNpm: isOfNpm() }, async () => {
    print('\nThe cluster ends …')
    await cluster?.close(graceMs).catch(fail)
    process.exit(0)
  })
  cluster = await openCluster({ folder: values.folder, counts, tell: (text) => print(`  ${text}`) })
  await tell(cluster)
}

async function tell({ folder, processes, nats, settings }: Cluster): Promise<void> {
  const file = path.join(folder, 'environment')
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  await writeFile(file, lines.join(''), { mode: 0o600 })
  for (const { name, url, sipPort } of processes)
    print(`  ${name.padEnd(10)} ${url}${sipPort === null ? '' : `   sip:127.0.0.1:${sipPort}`}`)
  print(`  ${'nats'.padEnd(10)} ${nats.map(({ url }) => url).join(' ')}`)
  print(
    `\nLog files: ${folder}/*.log. For npm run admin, the settings of database, bus and key:\n  set -a; . ${file}; set +a`,
  )
  if (!settingNames.includes('ROLES'))
    print('Every process has every role but the telephone edge: this version cannot split them.')
}

function fail(error: unknown): never {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}

main().catch(fail)
