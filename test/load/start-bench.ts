/**
 * Owns `npm run bench start [rest=60] [rounds=1]`: the service as `npm start` starts it, on a new folder and again on the same. Prints when the first
 * request is answered, what the start costs, when the self-test is over, and what the process takes and holds at rest. How dear a wake-up is depends on
 * the machine, on an idle one above all: beside the process at rest stands a bare one that wakes as often and does nothing.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { printTable } from './table.ts'

const root = path.resolve(import.meta.dirname, '../..')
const defaultRestSeconds = 60
const restReadMs = 20_000
const lookEvery = 10
const msPerTick = 10
/** Of the last table that it prints: the self-test is over. */
const lastLine = /^\W*self-test\W+(passed|FAILED)/

export async function benchStart(given: readonly string[]): Promise<void> {
  const valueOf = (name: string, usual: number): number =>
    Number(given.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) ?? usual)
  const [rest, rounds] = [valueOf('rest', defaultRestSeconds) * 1_000, valueOf('rounds', 1)]
  const rows: Record<string, string>[] = []
  for (let round = 0; round < rounds; round++) {
    const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
    try {
      rows.push(await measure('on a new folder', dataDir, 0))
      rows.push(await measure('again', dataDir, rest))
    } finally {
      await rm(dataDir, { recursive: true, force: true })
    }
  }
  printTable(rows)
  console.log(
    'CPU to ready: of all threads of the process, without Postgres. At rest: the same, and the RSS, which holds about 60 MB of the program of Node itself; a bare process that wakes as often was read right after it.',
  )
}

async function measure(name: string, dataDir: string, restMs: number): Promise<Record<string, string>> {
  const port = await freePort()
  const { start } = (
    JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as { scripts: { start: string } }
  ).scripts
  const began = performance.now()
  // As npm runs it.
  const child = spawn('sh', ['-c', start], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      PATH: `${path.join(root, 'node_modules/.bin')}:${process.env['PATH'] ?? ''}`,
      DATA_DIR: dataDir,
      PORT: String(port),
      SIP_PORT: '0',
    },
  })
  const exited = once(child, 'exit')
  const pid = child.pid ?? 0
  const lines = createInterface({ input: child.stdout })
  const printed = new Promise<number>((resolve) =>
    lines.on('line', (line) => lastLine.test(line) && resolve(performance.now() - began)),
  )
  try {
    await answered(`http://127.0.0.1:${port}/health`, () => child.exitCode === null)
    const [readyMs, readyCpu] = [performance.now() - began, cpuMsOf(pid)]
    const testedMs = await printed
    const testedCpu = cpuMsOf(pid)
    await pause(restMs)
    const rest = restMs > 0 ? await restOf(pid) : null
    const floor = rest && (await floorOf(rest.wakeUps))
    return {
      start: name,
      'first answer s': (readyMs / 1_000).toFixed(2),
      'CPU to ready ms': readyCpu.toFixed(0),
      'self-test over s': (testedMs / 1_000).toFixed(1),
      'CPU of the self-test ms': (testedCpu - readyCpu).toFixed(0),
      'at rest: CPU ms a second': rest ? rest.cpuMs.toFixed(1) : '-',
      'wake-ups a second': rest ? rest.wakeUps.toFixed(0) : '-',
      'bare process, as often: CPU ms a second': floor ? floor.cpuMs.toFixed(1) : '-',
      'at rest: RSS MB': rest ? (rssBytesOf(pid) / 1e6).toFixed(0) : '-',
    }
  } finally {
    child.kill('SIGTERM')
    await exited
  }
}

type Rest = { readonly cpuMs: number; readonly wakeUps: number }

/** A second, of all its threads. */
async function restOf(pid: number): Promise<Rest> {
  const before = { cpuMs: cpuMsOf(pid), wakeUps: wakeUpsOf(pid) }
  await pause(restReadMs)
  const aSecond = (more: number): number => (more * 1_000) / restReadMs
  return { cpuMs: aSecond(cpuMsOf(pid) - before.cpuMs), wakeUps: aSecond(wakeUpsOf(pid) - before.wakeUps) }
}

/** Node with a timer and nothing else. */
async function floorOf(wakeUps: number): Promise<Rest> {
  const bare = spawn(process.execPath, ['-e', `setInterval(() => {}, ${1_000 / wakeUps})`], { stdio: 'ignore' })
  const exited = once(bare, 'exit')
  try {
    await pause(1_000)
    return await restOf(bare.pid ?? 0)
  } finally {
    bare.kill('SIGTERM')
    await exited
  }
}

async function answered(url: string, lives: () => boolean): Promise<void> {
  while (lives()) {
    const answer = await fetch(url).catch(() => null)
    await answer?.arrayBuffer()
    if (answer?.ok) return
    await pause(lookEvery)
  }
  throw new Error('the service ended before it answered')
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Of all its threads, with those that have ended. NaN where the system does not tell. */
function cpuMsOf(pid: number): number {
  try {
    // proc(5): user and system time are the 14th and 15th field; the 2nd, in parentheses, may hold spaces.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * msPerTick
  } catch {
    return Number.NaN // No /proc here.
  }
}

/** Of all its threads: how often they waited. NaN where the system does not tell. */
function wakeUpsOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
      const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'latin1')
      return sum + Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1])
    }, 0)
  } catch {
    return Number.NaN // No /proc here.
  }
}

function rssBytesOf(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) * 1024
  } catch {
    return Number.NaN // No /proc here.
  }
}
