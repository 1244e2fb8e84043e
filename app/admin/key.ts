/** Owns the commands of API keys. */
import { expiryOf } from '../../model/api-key.ts'
import { toIso } from '../../model/clock.ts'
import { Problem } from '../../model/problem.ts'
import { createApiKey, listApiKeys, revokeApiKey } from '../../store/api-keys.ts'
import { newId } from '../core.ts'
import { idOf, print, required, textOf, type Commands } from './command.ts'

export const keyCommands: Commands = {
  'key list': {
    usage: 'key list <accountId>',
    async runOn({ sql }, [account]) {
      const when = (ms: number | null): string => (ms === null ? 'never' : toIso(ms))
      for (const { id, prefix, name, lastUsedAt, revokedAt } of await listApiKeys(sql, idOf(account, 'accountId')))
        print(`${id}  ${prefix}…  ${name}  last used ${when(lastUsedAt)}  ${revokedAt === null ? '' : 'revoked'}`)
      return 0
    },
  },
  'key create': {
    usage: 'key create <accountId> <name> [--expires <ISO 8601>]',
    options: { expires: { type: 'string' } },
    async runOn({ sql }, [account, name], options) {
      const expires = textOf(options, 'expires')
      if (expires !== undefined && Number.isNaN(Date.parse(expires)))
        throw new Problem('VALIDATION_FAILED', '--expires must be an ISO 8601 time')
      const now = Date.now()
      const key = { accountId: idOf<'account'>(account, 'accountId'), name: required(name, 'name') }
      const made = await createApiKey(sql, { ...key, expiresAt: expiryOf(expires, now), newId, now })
      print(`${made.id}\n${made.key}\nThe key is shown this once.`)
      return 0
    },
  },
  'key revoke': {
    usage: 'key revoke <accountId> <keyId>',
    async runOn({ sql }, [account, key]) {
      const revoked = await revokeApiKey(sql, idOf(account, 'accountId'), idOf(key, 'keyId'), Date.now())
      print(revoked ? 'revoked' : 'the account has no such key')
      return revoked ? 0 : 1
    },
  },
}
