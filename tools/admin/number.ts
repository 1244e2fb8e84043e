/** Owns the commands of telephone numbers: which account each takes calls for. */
import { z } from 'zod'
import { PhoneNumber } from '../../model/phone-number.ts'
import { readNumber } from '../../net/read-number.ts'
import { assignNumber, listNumbers, releaseNumber, type Assigned } from '../../store/account-numbers.ts'
import { accountOf, checked, required, type Commands } from './command.ts'

export const numberCommands: Commands = {
  'number list': {
    usage: 'number list [accountId]',
    async runOn({ sql, print }, [account]) {
      const of = account === undefined ? null : await accountOf(sql, account)
      for (const { number, accountId, assignedAt, workers } of await listNumbers(sql, of)) {
        const names = workers.map((name) => `“${name}”`).join(' ') || 'no worker'
        print(`${number}  ${accountId}  ${assignedAt === null ? 'claimed ' : 'assigned'}  ${names}`)
      }
      return 0
    },
  },
  'number assign': {
    usage: 'number assign <accountId> <number> [--move]',
    options: { move: { type: 'boolean' } },
    async runOn({ sql, print }, [account, given], options) {
      const [accountId, number] = [await accountOf(sql, account), numberIn(given)]
      const assigned = await assignNumber(sql, { accountId, number, move: options['move'] === true })
      print(`${number} takes calls for ${accountId}${lossOf(assigned)}`)
      return 0
    },
  },
  'number release': {
    usage: 'number release <number>',
    async runOn({ sql, print }, [given]) {
      const number = numberIn(given)
      const released = await releaseNumber(sql, number)
      print(released ? `${number} is nobody’s now${lossOf(released)}` : 'nobody has this number')
      return released ? 0 : 1
    },
  },
}

const numberIn = (given: string | undefined): string =>
  checked(z.object({ number: PhoneNumber }), { number: readNumber(required(given, 'number')) ?? given }).number

function lossOf({ from, workers }: Assigned): string {
  if (from === null) return ''
  const names = workers.map((name) => `“${name}”`).join(', ')
  return `; the account ${from} has lost it${names === '' ? '' : `, and so have its workers ${names}`}`
}
