/** Owns the commands of API keys. */
import { ApiKeyRequest, expiryOf } from '../../model/api-key.ts'
import { toIso } from '../../model/clock.ts'
import { Instant } from '../../model/instant.ts'
import { Problem } from '../../model/problem.ts'
import { createApiKey, listApiKeys, revokeApiKey } from '../../store/api-keys.ts'
import { newId } from '../../app/core.ts'
import { accountOf, checked, idOf, required, textOf, type Commands } from './command.ts'

export const keyCommands: Commands = {
  'key list': {
    usage: 'key list <accountId>',
    async runOn({ sql, print }, [account]) {
      const when = (ms: number | null): string => (ms === null ? 'never' : toIso(ms))
      for (const { id, prefix, name, scopes, lastUsedAt, revokedAt } of await listApiKeys(
        sql,
        await accountOf(sql, account),
      ))
        print(
          `${id}  ${prefix}…  ${name}  ${scopes.join(',')}  last used ${when(lastUsedAt)}  ${revokedAt === null ? '' : 'revoked'}`,
        )
      return 0
    },
  },
  'key create': {
    usage: 'key create <accountId> <name> [--scopes <read,calls,manage>] [--expires <ISO 8601, or a day>]',
    options: { scopes: { type: 'string' }, expires: { type: 'string' } },
    async runOn({ sql, print }, [account, name], options) {
      const expires = expiresOf(textOf(options, 'expires'))
      const now = Date.now()
      const wanted = checked(ApiKeyRequest, {
        name: required(name, 'name'),
        scopes: textOf(options, 'scopes')?.split(','),
        expiresAt: expires,
      })
      const key = { ...wanted, accountId: await accountOf(sql, account), expiresAt: expiryOf(expires, now) }
      const made = await createApiKey(sql, { ...key, newId, now })
      print(`${made.id}\n${made.key}\nThe key is shown this once.`)
      return 0
    },
  },
  'key revoke': {
    usage: 'key revoke <accountId> <keyId>',
    async runOn({ sql, print }, [account, key]) {
      const revoked = await revokeApiKey(sql, await accountOf(sql, account), idOf(key, 'keyId'), Date.now())
      print(revoked ? 'revoked' : 'the account has no such key')
      return revoked ? 0 : 1
    },
  },
}

/** A day ends its keys when it begins, in UTC. */
function expiresOf(given: string | undefined): string | undefined {
  if (given === undefined) return undefined
  const instant = /^\d{4}-\d{2}-\d{2}$/.test(given) ? `${given}T00:00:00Z` : given
  if (Instant.safeParse(instant).success) return instant
  throw new Problem('VALIDATION_FAILED', '--expires must be an ISO 8601 time with a time zone, or a day')
}
