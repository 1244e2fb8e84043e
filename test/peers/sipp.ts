/**
 * Owns sipp as the other side of calls: a scenario of test/flows/sipp, ports of its own on loopback, its exit code, and on failure the
 * messages it saw. A scenario `callee-…` or `registrar` waits for requests, any other one sends the first.
 */
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { createFolder } from '../scenes/folder.ts'
import { freePorts, hasProgram, startProgram } from './peer-program.ts'
import { until } from '../scenes/in-time.ts'

const program = '/usr/bin/sipp'
const scenarios = path.join(import.meta.dirname, '../flows/sipp')

export const withoutSipp = (): string | false => (hasProgram(program) ? false : `no ${program}`)

export type SippOptions = {
  /** Of the service; a callee has none. */
  readonly to?: number
  /** Whom it calls. */
  readonly number?: string
  readonly transport?: 'udp' | 'tcp'
  readonly calls?: number
  /** A second; as one call without it. */
  readonly rate?: number
  /** Calls that are open at the same time: beyond it sipp waits. */
  readonly atOnce?: number
  /** Ms of the pauses of the scenario that name no length of their own. */
  readonly pause?: number
  /** Percent of all messages, both ways. */
  readonly lost?: number
  readonly login?: { readonly username: string; readonly password: string }
  /** What the scenario leaves open in brackets: sipp's own keywords cannot stand for a status. */
  readonly words?: Readonly<Record<string, string | number>>
  /** Where it wants its sound; a port of its own without it. */
  readonly mediaPort?: number
  /** Messages are not kept: for many calls. */
  readonly quiet?: boolean
  /** Seconds for all of its calls; 60 unless told. */
  readonly within?: number
}

export type Sipp = {
  readonly port: number
  /** Rejects when a call was not as the scenario says. */
  readonly done: Promise<void>
  /** Resolves when it has seen so many messages that begin so. */
  seen(beginning: string, times?: number): Promise<void>
}

type Teardown = { teardown(close: () => Promise<void>): unknown }

/** It is ready when this resolves. */
export async function startSipp(t: Teardown, scenario: string, options: SippOptions = {}): Promise<Sipp> {
  const folder = await createFolder(t)
  const messages = path.join(folder, 'messages.log')
  const template = await readFile(path.join(scenarios, `${scenario}.xml`), 'utf8')
  await writeFile(path.join(folder, 'scenario.xml'), filled(template, options.words ?? {}))
  // SIP, control, sound and its RTCP; it takes the next two for pictures, wanted or not.
  const port = await freePorts(6)
  const child = startProgram(program, flagsOf(port, options), folder)
  t.teardown(() => child.close())
  const read = (name: string) => readFile(path.join(folder, name), 'latin1').catch(() => '')
  const { transport = 'udp' } = options
  const done = child.ended.then(async (code) => {
    if (code === 0) return
    const seen = (await read('messages.log')).slice(0, 20_000)
    throw new Error(`sipp ${scenario} ended with ${code}\n${await read('errors.log')}\n${seen}`)
  })
  let failure: Error | null = null
  // Whoever waits for it hears of it; a test that fails elsewhere does not.
  done.catch((error: Error) => (failure = error))
  if (options.to === undefined) await child.listening(transport, port)
  return {
    port,
    done,
    async seen(beginning, times = 1) {
      const count = async () => (await readFile(messages, 'latin1').catch(() => '')).split(`\n${beginning}`).length - 1
      await until(async () => {
        if (failure !== null) throw failure
        return (await count()) >= times
      })
    },
  }
}

const filled = (template: string, words: Readonly<Record<string, string | number>>): string =>
  Object.entries(words).reduce((text, [name, value]) => text.replaceAll(`[${name}]`, String(value)), template)

function flagsOf(port: number, options: SippOptions): string[] {
  const { to, number = 'nobody', transport = 'udp', calls = 1, rate = 10, pause = 200, lost, login } = options
  const { mediaPort = port + 2, quiet = false, atOnce = calls, within = 60 } = options
  const values = {
    sf: 'scenario.xml',
    i: '127.0.0.1',
    mi: '127.0.0.1',
    p: port,
    cp: port + 1,
    mp: mediaPort,
    t: transport === 'tcp' ? 't1' : 'u1',
    m: calls,
    l: atOnce,
    r: rate,
    d: pause,
    s: number,
    timeout: within,
    error_file: 'errors.log',
    ...(!quiet && { message_file: 'messages.log' }),
    ...(lost !== undefined && { lost }),
    ...(login && { au: login.username, ap: login.password }),
  }
  const switches = ['-nostdin', '-bind_local', '-timeout_error', '-trace_err', ...(quiet ? [] : ['-trace_msg'])]
  const named = Object.entries(values).flatMap(([name, value]) => [`-${name}`, String(value)])
  return [...switches, ...named, ...(to === undefined ? [] : [`127.0.0.1:${to}`])]
}
