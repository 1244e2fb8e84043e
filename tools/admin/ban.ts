/** Owns the commands of bans: addresses that failed too often, and are not heard for a while. */
import { toIso } from '../../model/clock.ts'
import { Problem } from '../../model/problem.ts'
import { addressGroupOf, plainAddressOf } from '../../net/addresses.ts'
import { listBans, liftBans } from '../../store/bans.ts'
import { required, type Command, type Commands } from './command.ts'

const most = 1_000

const list: Omit<Extract<Command, { runOn: unknown }>, 'usage'> = {
  async runOn({ sql, print }) {
    const bans = await listBans(sql, Date.now(), most + 1)
    for (const { group, isProven, covers, failure, since, until } of bans.slice(0, most))
      print(
        `${writtenOf(group)}  ${failure}  ${isProven ? 'proven' : 'UDP only'}${covers === 'questions' ? ', not its calls' : ''}  since ${toIso(since)}  until ${toIso(until)}`,
      )
    if (bans.length > most) print(`and more than these ${most}`)
    if (bans.length === 0) print('nobody is banned')
    return 0
  },
}

export const banCommands: Commands = {
  'bans list': { usage: 'bans list', ...list },
  'bans lift': {
    usage: 'bans lift <address>',
    async runOn({ sql, print }, [text]) {
      const lifted = await liftBans(sql, groupOf(required(text, 'address')))
      print(lifted > 0 ? 'lifted; every process knows it within 5 seconds' : 'this address is not banned')
      return lifted > 0 ? 0 : 1
    },
  },
  bans: { usage: 'bans', ...list },
}

/** As it is listed, or an address of it; `all` are all. */
function groupOf(text: string): string | null {
  if (text === 'all') return null
  const address = plainAddressOf(text.replace(/\/64$/, ''))
  if (address === null) throw new Problem('VALIDATION_FAILED', '<address> must be an IP address, or all')
  return addressGroupOf(address)
}

/** An IPv6 network as networks are written. */
const writtenOf = (group: string): string => (group.includes(':') ? `${group}::/64` : group)
