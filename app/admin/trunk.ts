/** Owns the commands of trunks. */
import { Problem } from '../../model/problem.ts'
import { TrunkRequest } from '../../model/trunk.ts'
import { createTrunks } from '../../store/trunks.ts'
import { systemClock as clock } from '../clock.ts'
import { newId } from '../core.ts'
import {
  accountOf,
  checked,
  idOf,
  numberOf,
  readSecret,
  required,
  textOf,
  textsOf,
  type AdminDatabase,
  type Commands,
} from './command.ts'

const one = { type: 'string' } as const
const several = { type: 'string', multiple: true } as const

export const trunkCommands: Commands = {
  'trunk list': {
    usage: 'trunk list <accountId>',
    async runOn(database, [account]) {
      for (const trunk of await (await trunksOf(database)).list(await accountOf(database.sql, account))) {
        const gateways = (trunk.gateways ?? []).map(({ host, port }) => (port === undefined ? host : `${host}:${port}`))
        const state = `${trunk.direction}${trunk.isActive ? '' : ' (off)'}`
        database.print(
          `${trunk.id}  ${state}  ${gateways.join(' ') || '-'}  ${trunk.workerIds.length} workers  ${trunk.name}`,
        )
      }
      return 0
    },
  },
  'trunk add': {
    usage:
      'trunk add <accountId> <name> [--gateway <host[:port][;transport=udp|tcp|tls]>]… [--direction inbound|outbound|both]\n' +
      '    [--allow <address or network>]… [--username <name>] [--password-file <file, - for standard input>] [--realm <realm>]\n' +
      '    [--register] [--codec PCMU|PCMA|G722|opus]… [--prefix <digits>] [--max-calls <n>] [--worker <workerId>]…',
    options: {
      gateway: several,
      direction: one,
      allow: several,
      username: one,
      'password-file': one,
      realm: one,
      register: { type: 'boolean' },
      codec: several,
      prefix: one,
      'max-calls': one,
      worker: several,
    },
    async runOn(database, [account, name], options) {
      const accountId = await accountOf(database.sql, account)
      const passwordFile = textOf(options, 'password-file')
      const request = checked(TrunkRequest, {
        name: required(name, 'name'),
        gateways: textsOf(options, 'gateway')?.map(gatewayOf),
        direction: textOf(options, 'direction'),
        allowedAddresses: textsOf(options, 'allow'),
        username: textOf(options, 'username'),
        password: passwordFile === undefined ? undefined : await readSecret(passwordFile),
        realm: textOf(options, 'realm'),
        register: options['register'],
        codecs: textsOf(options, 'codec'),
        numberPrefix: textOf(options, 'prefix'),
        maxConcurrentCalls: numberOf(options, 'max-calls', { least: 0, most: 100_000 }),
        workerIds: textsOf(options, 'worker'),
      })
      database.print((await (await trunksOf(database)).create(accountId, request)).id)
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
}

const trunksOf = async ({ sql, openBox }: AdminDatabase) => createTrunks({ sql, box: await openBox(), clock, newId })

/** `[2001:db8::1]:5061;transport=tls`, like the end of a SIP URI (RFC 3261 section 19.1.1). */
function gatewayOf(text: string) {
  const [, host, port, transport] = /^(\[[^\]]+\]|[^:;]+)(?::(\d+))?(?:;transport=(\w+))?$/.exec(text) ?? []
  if (host === undefined) throw new Problem('VALIDATION_FAILED', `--gateway ${text} must be like sip.example.com:5060`)
  return { host, ...(port !== undefined && { port: Number(port) }), ...(transport !== undefined && { transport }) }
}
