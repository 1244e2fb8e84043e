/** Owns the commands of stored secrets. */
import { randomUUID } from 'node:crypto'
import { makeKey } from '../../mcp/oauth/signing-keys.ts'
import { knownBefore, loadOauthKeys } from '../../store/oauth-keys.ts'
import { resealSecrets } from '../../store/reseal-secrets.ts'
import type { Commands } from './command.ts'

export const secretCommands: Commands = {
  'secret reseal': {
    usage: 'secret reseal',
    async runOn({ sql, openBox, print }) {
      const { resealed, unopened } = await resealSecrets({ sql, box: await openBox() })
      print(`${resealed} sealed anew with the newest key, ${unopened} do not open with any key of APP_SECRET`)
      return unopened === 0 ? 0 : 1
    },
  },
  'secret rotate': {
    usage: 'secret rotate',
    async runOn({ sql, openBox, print }) {
      const unopened = (id: string): void => print(`the key ${id} does not open with any key of APP_SECRET`)
      const deps = { sql, box: await openBox(), now: Date.now(), newId: randomUUID, make: makeKey, unopened }
      await loadOauthKeys(deps, { rotate: true })
      print(
        `the authorization server of MCP has new keys, which sign in ${knownBefore / 60_000} minutes, when every process knows them`,
      )
      return 0
    },
  },
}
