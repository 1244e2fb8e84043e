/**
 * Owns how oidc-provider keeps its things in Postgres. Everything is there and nothing in the process, so that another process goes on with what
 * this one began. A person's session with the library is kept nowhere: who is signed in is known by the session of our own pages, and each
 * authorization is approved anew.
 */
import { errors, Provider, type Adapter, type AdapterPayload } from 'oidc-provider'
import { findClient, registerClient, type ClientMetadata } from '../../store/oauth-clients.ts'
import { findGrantPayload, removeGrant, saveGrantPayload, type GrantOwner } from '../../store/oauth-grants.ts'
import {
  consumePayload,
  findPayload,
  removePayload,
  savePayload,
  savePayloadOfGrant,
  savePayloadOnce,
  type Payload,
  type PayloadKind,
} from '../../store/oauth-payloads.ts'
import type { Sql } from '../../store/sql.ts'
import { askedAtOf } from './node-exchange.ts'

type Deps = {
  readonly sql: Sql
  readonly now: () => number
  /** Of a grant that a request has ended. */
  readonly ended: (grant: GrantOwner) => Promise<void>
}

const kinds: readonly string[] = [
  'AccessToken',
  'AuthorizationCode',
  'Interaction',
  'RefreshToken',
  'ReplayDetection',
] satisfies readonly PayloadKind[]

export function createAdapter(deps: Deps): (name: string) => Adapter {
  return (name) => {
    if (name === 'Client') return clientsOf(deps)
    if (name === 'Grant') return grantsOf(deps)
    if (kinds.includes(name)) return payloadsOf(deps, name as PayloadKind)
    return nothing
  }
}

const nobody = async (): Promise<undefined> => undefined

/** Nothing is kept, nothing is found. */
const nothing: Adapter = {
  upsert: nobody,
  find: nobody,
  findByUid: nobody,
  findByUserCode: nobody,
  consume: nobody,
  destroy: nobody,
  revokeByGrantId: nobody,
}

function clientsOf({ sql, now }: Deps): Adapter {
  return {
    ...nothing,
    async upsert(id, payload) {
      if (await registerClient(sql, { id, metadata: payload as ClientMetadata, now: now() })) return
      throw new errors.TemporarilyUnavailable('so many clients are registered that there is no room for another one')
    },
    find: async (id) => ((await findClient(sql, id)) ?? undefined) as AdapterPayload | undefined,
  }
}

/** The row is there before: who approved it has written what the library does not know. */
function grantsOf({ sql, now, ended }: Deps): Adapter {
  return {
    ...nothing,
    async upsert(id, payload) {
      if (!(await saveGrantPayload(sql, id, payload as Payload))) throw gone()
    },
    find: async (id) => ((await findGrantPayload(sql, id, now())) ?? undefined) as AdapterPayload | undefined,
    destroy: (id) => endGrant({ sql, ended }, id),
  }
}

/** The library asks for it several times at once, for each kind of token; one of them finds it. */
async function endGrant({ sql, ended }: Pick<Deps, 'sql' | 'ended'>, id: string): Promise<void> {
  const grant = await removeGrant(sql, id)
  if (grant) await ended(grant)
}

function payloadsOf({ sql, now, ended }: Deps, kind: PayloadKind): Adapter {
  return {
    ...nothing,
    async upsert(id, given, expiresIn = 0) {
      const payload = given as Payload
      const fresh = { kind, id, payload, expiresAt: now() + expiresIn * 1000 }
      const { grantId } = given
      if (kind === 'ReplayDetection') {
        if (!(await savePayloadOnce(sql, { ...fresh, now: now() }))) throw replayed()
      } else if (kind === 'Interaction' || grantId === undefined) await savePayload(sql, fresh)
      else if (!(await savePayloadOfGrant(sql, { ...fresh, grantId }))) throw gone()
    },
    async find(id) {
      const found = await findPayload(sql, { kind, id, now: now() })
      if (found === null) return undefined
      if (kind === 'RefreshToken' && found.consumedAt !== null && found.consumedAt > askedAt()) throw atOnce()
      const consumed = found.consumedAt === null ? {} : { consumed: Math.floor(found.consumedAt / 1000) }
      return { ...found.payload, ...consumed } as AdapterPayload
    },
    async consume(id) {
      if (await consumePayload(sql, { kind, id, now: now() })) return
      // Another request has consumed it since this one found it. A code is sent once, so this is a replay: docs/security.md.
      if (kind === 'AuthorizationCode') await endGrantOf(id)
      throw atOnce()
    },
    destroy: (id) => removePayload(sql, kind, id),
    revokeByGrantId: (grantId) => endGrant({ sql, ended }, grantId),
  }

  async function endGrantOf(id: string): Promise<void> {
    const grantId = (await findPayload(sql, { kind, id, now: now() }))?.payload['grantId']
    if (typeof grantId === 'string') await endGrant({ sql, ended }, grantId)
  }
}

/**
 * When the request came that is being answered. One that came before its refresh token was used by another cannot know of it: a client with two
 * windows, or one that has sent it again. It is refused, and the grant lives on; who comes later with a used token ends it.
 */
const askedAt = (): number => askedAtOf(Provider.ctx?.req) ?? 0

const atOnce = (): Error => new errors.InvalidGrant('it was used by another request at the same moment')
const gone = (): Error => new errors.InvalidGrant('the grant was revoked')
const replayed = (): Error => new errors.InvalidClient('the assertion was used before')
