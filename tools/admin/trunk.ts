/** Owns the commands of trunks. */
import { toIso } from '../../model/clock.ts'
import type { TrunkId } from '../../model/ids.ts'
import { Problem } from '../../model/problem.ts'
import { TrunkChange, TrunkRequest, type TrunkState } from '../../model/trunk.ts'
import { listAllRefusals, type ToldRefusal } from '../../store/call-refusals.ts'
import { createTrunks } from '../../store/trunks.ts'
import { systemClock as clock } from '../../app/clock.ts'
import { newId } from '../../app/core.ts'
import {
  accountOf,
  checked,
  decimalOf,
  idOf,
  numberOf,
  readSecret,
  readText,
  required,
  textOf,
  textsOf,
  type AdminDatabase,
  type Commands,
  type Options,
} from './command.ts'
import { trunkTestCommand } from './trunk-test.ts'

const one = { type: 'string' } as const
const several = { type: 'string', multiple: true } as const

const settingOptions = {
  settings: one,
  gateway: several,
  direction: one,
  allow: several,
  username: one,
  'auth-username': one,
  'password-file': one,
  'tls-certificate-file': one,
  'tls-key-file': one,
  extension: several,
  'called-form': one,
  'calling-form': one,
  'country-code': one,
  realm: one,
  'authenticate-inbound': { type: 'boolean' },
  'caller-id': one,
  'trust-identity': { type: 'boolean' },
  domain: one,
  'transfer-to': one,
  encryption: one,
  'no-qualify': { type: 'boolean' },
  register: { type: 'boolean' },
  codec: several,
  header: several,
  prefix: one,
  'max-calls': one,
  'calls-per-second': one,
  worker: several,
} as const

export const trunkCommands: Commands = {
  'trunk list': {
    usage: 'trunk list <accountId>',
    async runOn(database, [account]) {
      const accountId = await accountOf(database.sql, account)
      const trunks = await trunksOf(database)
      for (const trunk of await trunks.list(accountId)) {
        const state = await trunks.stateOf(accountId, trunk.id as TrunkId)
        const gateways = (state?.gateways ?? []).map((gateway) => `${gatewayText(gateway)}${reachableText(gateway)}`)
        const direction = `${trunk.direction}${trunk.isActive ? '' : ' (off)'}`
        const registration = state && state.registration !== 'none' ? `  ${state.registration}` : ''
        database.print(
          `${trunk.id}  ${direction}  ${gateways.join(' ') || '-'}${registration}  ${trunk.workerIds.length} workers  ${trunk.name}`,
        )
      }
      return 0
    },
  },
  'trunk show': {
    usage: 'trunk show <accountId> <trunkId>',
    async runOn(database, [account, trunk]) {
      const [accountId, trunkId] = [await accountOf(database.sql, account), idOf<'trunk'>(trunk, 'trunkId')]
      const trunks = await trunksOf(database)
      const [found, state] = [await trunks.find(accountId, trunkId), await trunks.stateOf(accountId, trunkId)]
      if (!found || !state) throw new Problem('NOT_FOUND', 'the account has no such trunk')
      database.print(JSON.stringify({ ...found, state }, null, 2))
      return 0
    },
  },
  'trunk add': {
    usage:
      'trunk add <accountId> <name> [--settings <JSON file of what the API takes; options win>]\n' +
      '    [--gateway <host[:port][;transport=udp|tcp|tls]>]… [--direction inbound|outbound|both]\n' +
      '    [--allow <address or network>]… [--username <name>] [--password-file <file, - for standard input>] [--realm <realm>]\n' +
      '    [--authenticate-inbound] [--caller-id from|identity|username] [--trust-identity] [--domain <host>] [--transfer-to sip|tel]\n' +
      '    [--auth-username <name>] [--extension <user[=workerId]>]… [--called-form plus|digits|national] [--calling-form plus|digits|national]\n' +
      '    [--country-code <digits>] [--tls-certificate-file <PEM file> --tls-key-file <PEM file>]\n' +
      '    [--encryption none|sdes] [--no-qualify] [--register] [--codec PCMU|PCMA|G722|opus]… [--header <name: value>]…\n' +
      '    [--prefix <digits>] [--max-calls <n>] [--calls-per-second <n>] [--worker <workerId>]…',
    options: settingOptions,
    async runOn(database, [account, name], options) {
      const accountId = await accountOf(database.sql, account)
      const request = checked(TrunkRequest, { ...(await settingsOf(options)), name: required(name, 'name') })
      database.print((await (await trunksOf(database)).create(accountId, request)).id)
      return 0
    },
  },
  'trunk widen': {
    usage: 'trunk widen <accountId> <trunkId> --allow <address or network>…',
    options: { allow: several },
    async runOn(database, [account, trunk], options) {
      const [accountId, trunkId] = [await accountOf(database.sql, account), idOf<'trunk'>(trunk, 'trunkId')]
      const trunks = await trunksOf(database)
      const found = await trunks.find(accountId, trunkId)
      if (!found) throw new Problem('NOT_FOUND', 'the account has no such trunk')
      const added = textsOf(options, 'allow') ?? []
      if (added.length === 0) throw new Problem('VALIDATION_FAILED', '--allow is missing')
      const allowedAddresses = [...new Set([...(found.allowedAddresses ?? []), ...added])]
      const changed = await trunks.change(accountId, trunkId, checked(TrunkChange, { allowedAddresses }))
      for (const network of changed?.allowedAddresses ?? []) database.print(network)
      return 0
    },
  },
  'trunk remove': {
    usage: 'trunk remove <accountId> <trunkId>',
    async runOn(database, [account, trunk]) {
      const accountId = await accountOf(database.sql, account)
      const removed = await (await trunksOf(database)).remove(accountId, idOf(trunk, 'trunkId'))
      database.print(removed ? 'removed' : 'the account has no such trunk')
      return removed ? 0 : 1
    },
  },
  'trunk test': trunkTestCommand,
  'trunk refusals': {
    usage: 'trunk refusals [accountId]',
    async runOn({ sql, print }, [account]) {
      const of = account === undefined ? null : await accountOf(sql, account)
      const refusals = await listAllRefusals(sql, { accountId: of, limit: refusalsShown })
      for (const refusal of refusals) print(refusalText(refusal))
      if (refusals.length === 0) print('no call was refused')
      return 0
    },
  },
}

const refusalsShown = 100

function refusalText(refusal: ToldRefusal): string {
  const { lastAt, count, direction, reason, sipStatus, details, address, calling, called, accountId } = refusal
  const answer = sipStatus === null ? '' : ` ${sipStatus}`
  const ends = `${calling ?? 'withheld'} → ${called ?? 'nobody'}${address === null ? '' : ` from ${address}`}`
  const times = count === 1 ? '' : ` (${count} times)`
  const head = `${toIso(lastAt)}  ${accountId ?? 'nobody’s'}  ${direction} ${reason}${answer}  ${ends}${times}`
  return `${plain(head)}\n    ${plain(details)}`
}

/** Text from the network must not control the terminal of an operator. */
const plain = (text: string): string => text.replace(/\p{Cc}/gu, '?')

async function settingsOf(options: Options) {
  const passwordFile = textOf(options, 'password-file')
  const settings = await jsonOf(textOf(options, 'settings'))
  const given = {
    gateways: textsOf(options, 'gateway')?.map(gatewayOf),
    direction: textOf(options, 'direction'),
    allowedAddresses: textsOf(options, 'allow'),
    username: textOf(options, 'username'),
    tlsCertificate: await readFrom(options, 'tls-certificate-file'),
    tlsKey: await readFrom(options, 'tls-key-file'),
    authUsername: textOf(options, 'auth-username'),
    extensions: textsOf(options, 'extension')?.map(extensionOf),
    numberFormat: numberFormatOf(options),
    password: passwordFile === undefined ? undefined : await readSecret(passwordFile),
    realm: textOf(options, 'realm'),
    authenticateInbound: options['authenticate-inbound'],
    callerId: textOf(options, 'caller-id'),
    trustsIdentity: options['trust-identity'],
    domain: textOf(options, 'domain'),
    transferTo: textOf(options, 'transfer-to'),
    encryption: textOf(options, 'encryption'),
    qualify: options['no-qualify'] === true ? false : undefined,
    register: options['register'],
    codecs: textsOf(options, 'codec'),
    headers: headersOf(textsOf(options, 'header')),
    numberPrefix: textOf(options, 'prefix'),
    maxConcurrentCalls: numberOf(options, 'max-calls', { least: 0, most: 100_000 }),
    maxCallsPerSecond: decimalOf(options, 'calls-per-second'),
    workerIds: textsOf(options, 'worker'),
  }
  return { ...settings, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) }
}

const readFrom = async (options: Options, name: string): Promise<string | undefined> => {
  const file = textOf(options, name)
  return file === undefined ? undefined : readText(file)
}

/** Empty without a file. */
async function jsonOf(file: string | undefined): Promise<Readonly<Record<string, unknown>>> {
  if (file === undefined) return {}
  const refused = new Problem('VALIDATION_FAILED', `--settings ${file} must hold a JSON object of settings`)
  const text = await readText(file)
  try {
    const read: unknown = JSON.parse(text)
    if (typeof read === 'object' && read !== null && !Array.isArray(read)) return read as Record<string, unknown>
  } catch {
    throw refused
  }
  throw refused
}

const gatewayText = ({ host, port }: TrunkState['gateways'][number]): string =>
  port === null ? host : `${host}:${port}`

/** A gateway that was not asked yet says nothing. */
function reachableText({ reachable }: TrunkState['gateways'][number]): string {
  if (reachable === null) return ''
  return reachable ? ' (reachable)' : ' (unreachable)'
}

function headersOf(texts: readonly string[] | undefined): Record<string, string> | undefined {
  const pairs = texts?.map((text) => {
    const [, name, value] = /^([^:\s]+)\s*:\s*(.*)$/.exec(text) ?? []
    if (name === undefined || value === undefined)
      throw new Problem('VALIDATION_FAILED', `--header ${text} must be like X-Account: acme`)
    return [name, value] as const
  })
  return pairs && Object.fromEntries(pairs)
}

/** Behind the last `=`: a user may hold one, an id holds none. */
function extensionOf(text: string) {
  const [, user, workerId] = /^(.*)=([^=]*)$/.exec(text) ?? []
  return user === undefined ? { user: text } : { user, workerId }
}

function numberFormatOf(options: Options) {
  const [called, calling] = [textOf(options, 'called-form'), textOf(options, 'calling-form')]
  const countryCode = textOf(options, 'country-code')
  const given = Object.entries({ called, calling, countryCode }).filter(([, value]) => value !== undefined)
  return given.length === 0 ? undefined : Object.fromEntries(given)
}

const trunksOf = async ({ sql, openBox }: AdminDatabase) => createTrunks({ sql, box: await openBox(), clock, newId })

/** `[2001:db8::1]:5061;transport=tls`, like the end of a SIP URI (RFC 3261 section 19.1.1). */
function gatewayOf(text: string) {
  const [, host, port, transport] = /^(\[[^\]]+\]|[^:;]+)(?::(\d+))?(?:;transport=(\w+))?$/.exec(text) ?? []
  if (host === undefined) throw new Problem('VALIDATION_FAILED', `--gateway ${text} must be like sip.example.com:5060`)
  return { host, ...(port !== undefined && { port: Number(port) }), ...(transport !== undefined && { transport }) }
}
