/** Owns the commands of accounts. */
import { Problem } from '../../model/problem.ts'
import { createAccount, listAccounts } from '../../store/accounts.ts'
import { newId } from '../core.ts'
import { required, type Commands } from './command.ts'

const slugShape = /^[a-z\d]+(?:-[a-z\d]+)*$/

export const accountCommands: Commands = {
  'account list': {
    usage: 'account list',
    async runOn({ sql, print }) {
      for (const { id, slug, name } of await listAccounts(sql)) print(`${id}  ${slug}  ${name}`)
      return 0
    },
  },
  'account create': {
    usage: 'account create <name> <slug>',
    async runOn({ sql, print }, [name, slug]) {
      if (!slugShape.test(required(slug, 'slug')))
        throw new Problem('VALIDATION_FAILED', '<slug> must be lower-case letters, digits and single hyphens')
      const account = { name: required(name, 'name'), slug: required(slug, 'slug'), newId, now: Date.now() }
      print((await createAccount(sql, account)).id)
      return 0
    },
  },
}
