/** Owns the keys of the authorization server in this process: taken from the database, and looked after often enough to know a new one before it signs. */
import { generateKeyPair, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import type { JWK } from 'oidc-provider'
import type { Log } from '../../model/log.ts'
import { knownBefore, loadOauthKeys, type OauthKey, type OauthKeyKind } from '../../store/oauth-keys.ts'
import type { RotatingSecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import type { Keys } from './provider.ts'

/** Ms. */
const lookEvery = knownBefore / 6

export type SigningKeys = {
  /** The same object as long as nothing has changed. */
  get(): Promise<Keys>
}

type Deps = { readonly sql: Sql; readonly box: RotatingSecretBox; readonly now: () => number; readonly log: Log }

export function createSigningKeys({ sql, box, now, log }: Deps): SigningKeys {
  let known: { readonly keys: Keys; readonly ids: string; readonly at: number } | null = null
  let looking: Promise<Keys> | null = null

  async function look(): Promise<Keys> {
    const at = now()
    const unopened = (id: string): void =>
      log.error('a key of the authorization server does not open: the secret that sealed it is lost', { id })
    const loaded = await loadOauthKeys({
      sql,
      box,
      now: at,
      newId: () => randomBytes(16).toString('base64url'),
      make: makeKey,
      unopened,
    })
    const ids = loaded.map(({ id }) => id).join()
    const keys = known?.ids === ids ? known.keys : keysOf(loaded)
    known = { keys, ids, at }
    return keys
  }
  return {
    async get() {
      if (known && now() < known.at + lookEvery) return known.keys
      looking ??= look().finally(() => (looking = null))
      return looking
    },
  }
}

const generate = promisify(generateKeyPair)

export async function makeKey(kind: OauthKeyKind): Promise<string> {
  if (kind === 'cookie') return randomBytes(32).toString('base64url')
  const { privateKey } = await generate('ec', { namedCurve: 'P-256' })
  return JSON.stringify(privateKey.export({ format: 'jwk' }))
}

function keysOf(loaded: readonly OauthKey[]): Keys {
  const signing = loaded.flatMap(({ id, kind, text }): JWK[] =>
    kind === 'token' ? [{ ...(JSON.parse(text) as JWK), kid: id, alg: 'ES256', use: 'sig' }] : [],
  )
  return { signing: { keys: signing }, cookies: loaded.filter(({ kind }) => kind === 'cookie').map(({ text }) => text) }
}
