/** Owns the commands of accounts. */
import { createAccount, listAccounts } from '../../store/accounts.ts'
import { newId } from '../core.ts'
import { print, required, type Commands } from './command.ts'

export const accountCommands: Commands = {
  'account list': {
    usage: 'account list',
    async runOn({ sql }) {
      for (const { id, slug, name } of await listAccounts(sql)) print(`${id}  ${slug}  ${name}`)
      return 0
    },
  },
  'account create': {
    usage: 'account create <name> <slug>',
    async runOn({ sql }, [name, slug]) {
      const account = { name: required(name, 'name'), slug: required(slug, 'slug'), newId, now: Date.now() }
      print((await createAccount(sql, account)).id)
      return 0
    },
  },
}
