/** Owns what stands behind `npm run load --`: which options there are, and what is wrong with those that were given, by their names. */
import { parseArgs } from 'node:util'
import { isLoopbackHost } from '../../net/loopback-host.ts'
import { hostText } from '../../sip/server/message/header-text.ts'
import { readSipUri } from '../../sip/server/message/uri.ts'
import type { Protocol } from '../../sip/server/transport/transport.ts'
import { Cannot } from '../cannot.ts'
import { readExpectation, type Expectation } from './expectations.ts'
import type { Arrivals, Way, Weather } from './load-job.ts'

export class WrongOptions extends Cannot {
  override readonly name = 'WrongOptions'
}

const options = {
  self: { type: 'boolean', default: false },
  url: { type: 'string' },
  key: { type: 'string' },
  worker: { type: 'string' },
  sip: { type: 'string' },
  transport: { type: 'string' },
  'tls-ca': { type: 'string' },
  'tls-any': { type: 'boolean', default: false },
  from: { type: 'string', default: '+12025550150' },
  say: { type: 'string', multiple: true },
  calls: { type: 'string' },
  rate: { type: 'string', default: '1' },
  ramp: { type: 'string', default: '0' },
  duration: { type: 'string' },
  hold: { type: 'string', default: '20' },
  'at-once': { type: 'string', default: '500' },
  processes: { type: 'string', default: '1' },
  loss: { type: 'string', default: '0' },
  jitter: { type: 'string', default: '0' },
  seed: { type: 'string', default: '1' },
  expect: { type: 'string', multiple: true },
  json: { type: 'string' },
  report: { type: 'string' },
  pid: { type: 'string' },
  metrics: { type: 'string' },
  'i-may-load': { type: 'string', multiple: true },
} as const

/** What fits the script of the demo. */
const usualWords = ['yes please', 'outside', 'coffee', 'yes']

export type SipWish = {
  readonly protocol: Protocol
  readonly host: string
  readonly port: number
  readonly called: string
}

export type LoadOptions = {
  readonly ways: readonly Way[]
  /** Of `replay`. */
  readonly files: readonly string[]
  readonly isSelf: boolean
  /** Null with `--self`, and where only telephones call. */
  readonly web: { readonly url: string; readonly key: string; readonly workerId: string | null } | null
  readonly sip: SipWish | null
  /** Of SIP with `--self`. */
  readonly transport: Protocol
  readonly tlsCaFile: string | null
  readonly trustsAny: boolean
  readonly from: string
  readonly say: readonly string[]
  readonly arrivals: Arrivals
  readonly weather: Weather
  readonly holdMs: number
  readonly atOnce: number
  readonly processes: number
  readonly expectations: readonly Expectation[]
  readonly json: string | null
  readonly report: string | null
  readonly pid: number | null
  readonly metrics: string | null
  readonly allowedHosts: readonly string[]
}

const wayNames: Readonly<Record<string, readonly Way[]>> = { web: ['web'], sip: ['sip'], mixed: ['web', 'sip'] }
export const loadWords = [...Object.keys(wayNames), 'replay']

/** Throws WrongOptions. */
export function readLoadOptions(word: string, given: readonly string[]): LoadOptions {
  const { values, positionals } = parsed(given)
  const ways = wayNames[word] ?? []
  const isReplay = word === 'replay'
  if (isReplay && positionals.length === 0) throw new WrongOptions('replay: name at least one session file')
  if (!isReplay && positionals.length > 0) throw new WrongOptions(`${word}: ${positionals[0]} is no option`)
  const number = numbersOf(values)
  const read: LoadOptions = {
    ways,
    files: positionals,
    isSelf: values.self,
    web: webOf(values),
    sip: values.sip === undefined ? null : sipOf(values.sip, values.transport),
    transport: protocolOf(values.transport ?? 'udp'),
    tlsCaFile: values['tls-ca'] ?? null,
    trustsAny: values['tls-any'],
    from: values.from,
    say: values.say ?? usualWords,
    arrivals: {
      rate: number('rate', 0.001, 5_000),
      rampMs: number('ramp', 0, 86_400) * 1000,
      ...boundsOf(values, isReplay ? positionals.length : 0),
      seed: whole('seed', values.seed, 0, 2 ** 32 - 1),
    },
    weather: { loss: number('loss', 0, 100) / 100, jitterMs: number('jitter', 0, 5_000) },
    holdMs: number('hold', 0.1, 3_600) * 1000,
    atOnce: whole('at-once', values['at-once'], 1, 20_000),
    processes: whole('processes', values.processes, 1, 64),
    expectations: (values.expect ?? []).map(expectationOf),
    json: values.json ?? null,
    report: values.report ?? null,
    pid: values.pid === undefined ? null : whole('pid', values.pid, 1, 2 ** 31),
    metrics: values.metrics === undefined ? null : urlOf('metrics', values.metrics),
    allowedHosts: values['i-may-load'] ?? [],
  }
  refuseTarget(read, word)
  return read
}

type Values = ReturnType<typeof parsed>['values']

function parsed(given: readonly string[]) {
  try {
    return parseArgs({ args: [...given], options, allowPositionals: true })
  } catch (error) {
    throw new WrongOptions(error instanceof Error ? error.message : String(error))
  }
}

const longest = 86_400

/** Of calls or time one may be left out, and then the other one bounds it; recorded calls are each made once. */
function boundsOf({ calls, duration }: Values, files: number): Pick<Arrivals, 'durationMs' | 'calls'> {
  const count = calls ?? (files > 0 && duration === undefined ? String(files) : undefined)
  const seconds = duration ?? (count === undefined ? '10' : String(longest))
  return {
    durationMs: within('duration', seconds, 0.1, longest) * 1000,
    calls: whole('calls', count ?? '1000000', 1, 1_000_000),
  }
}

const numbersOf =
  (values: Values) =>
  (name: 'rate' | 'ramp' | 'hold' | 'loss' | 'jitter', least: number, most: number): number =>
    within(name, values[name], least, most)

function within(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (text.trim() === '' || !(value >= least && value <= most))
    throw new WrongOptions(`--${name} must be a number from ${least} to ${most}, not ${JSON.stringify(text)}`)
  return value
}

function whole(name: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < least || value > most)
    throw new WrongOptions(`--${name} must be a whole number from ${least} to ${most}, not ${JSON.stringify(text)}`)
  return value
}

function expectationOf(text: string): Expectation {
  const read = readExpectation(text)
  if (typeof read === 'string') throw new WrongOptions(read)
  return read
}

function urlOf(name: string, text: string): string {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new WrongOptions(`--${name} must be an http or https address, not ${JSON.stringify(text)}`)
  return text
}

function webOf({ url, key, worker }: Values): LoadOptions['web'] {
  if (url === undefined && key === undefined) return null
  if (url === undefined) throw new WrongOptions('--key needs --url, the address of the service')
  if (key === undefined) throw new WrongOptions('--url needs --key, an API key of the account that is called')
  return { url: urlOf('url', url), key, workerId: worker ?? null }
}

function protocolOf(text: string): Protocol {
  if (text === 'udp' || text === 'tcp' || text === 'tls') return text
  throw new WrongOptions(`--transport must be udp, tcp or tls, not ${JSON.stringify(text)}`)
}

function sipOf(text: string, transport: string | undefined): SipWish {
  const uri = readSipUri(text)
  if (!uri || uri.user === null || uri.user === '')
    throw new WrongOptions(`--sip must read like sip:+12025550100@host:5060;transport=tcp, not ${JSON.stringify(text)}`)
  const isSecure = text.toLowerCase().startsWith('sips:')
  const protocol = protocolOf(transport ?? uri.params.get('transport')?.toLowerCase() ?? (isSecure ? 'tls' : 'udp'))
  return { protocol, host: uri.host, port: uri.port ?? (protocol === 'tls' ? 5061 : 5060), called: uri.user }
}

/** Nothing is sent where nobody said it may be. */
function refuseTarget(read: LoadOptions, word: string): void {
  const { isSelf, web, sip, ways, allowedHosts, metrics, transport } = read
  if (isSelf && (web || sip)) throw new WrongOptions('--self starts a service of its own: leave --url and --sip away')
  if (isSelf && transport === 'tls') throw new WrongOptions('--transport tls: --self has no certificate')
  if (!isSelf && !web && !sip)
    throw new WrongOptions(`${word}: say what is to be called: --self, or --url with --key, or --sip`)
  if (!isSelf && ways.includes('web') && !web) throw new WrongOptions(`${word}: calls by web need --url and --key`)
  if (!isSelf && ways.includes('sip') && !sip) throw new WrongOptions(`${word}: calls by telephone need --sip`)
  const named = [web && new URL(web.url).hostname, sip?.host, metrics === null ? null : new URL(metrics).hostname]
  for (const host of named) {
    if (!host || isLoopbackHost(hostText(host.replace(/^\[|\]$/g, '')))) continue
    if (allowedHosts.some((allowed) => allowed.toLowerCase() === host.toLowerCase())) continue
    throw new WrongOptions(`${host} is not this machine. Whoever may load it says so: --i-may-load ${host}`)
  }
}
