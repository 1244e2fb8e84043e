/**
 * Owns that all secrets of the database come to rest as they are sealed now: by the first key, bound to their place. What another process
 * changes meanwhile stays as that one wrote it. Several may do this at once.
 */
import type { AccountId, CallId, SubscriptionId, TrunkId } from '../model/ids.ts'
import { answerPlace } from './idempotency.ts'
import type { RotatingSecretBox } from './secret-box.ts'
import type { Sql } from './sql.ts'
import { formerSecretPlace, headersPlace, sealHeaders, signingSecretPlace } from './subscription-secrets.ts'
import { toolSecretPlace, type SealedTool } from './tool-calls.ts'
import { passwordPlace, tlsKeyPlace } from './trunks.ts'

/** `unopened`: sealed by a key that is not here, or altered; they stay as they are. */
export type Resealed = { readonly resealed: number; readonly unopened: number }

type Deps = { readonly sql: Sql; readonly box: RotatingSecretBox; readonly signal?: AbortSignal }

/** Of one column of text. `id` is that of the row within its account. */
type Column = {
  readonly table: string
  readonly column: string
  readonly idColumn: string
  readonly place: (accountId: AccountId, id: string) => string
}

const columns: readonly Column[] = [
  ofRow('trunks', 'password', (accountId, id) => passwordPlace({ accountId, id: id as TrunkId })),
  ofRow('trunks', 'tls_key', (accountId, id) => tlsKeyPlace({ accountId, id: id as TrunkId })),
  ofRow('webhook_subscriptions', 'signing_secret', (accountId, id) =>
    signingSecretPlace({ accountId, id: id as SubscriptionId }),
  ),
  ofRow('webhook_subscriptions', 'former_secret', (accountId, id) =>
    formerSecretPlace({ accountId, id: id as SubscriptionId }),
  ),
  ofRow('webhook_subscriptions', 'sealed_headers', (accountId, id) =>
    headersPlace({ accountId, id: id as SubscriptionId }),
  ),
  { table: 'idempotency_keys', column: 'answer', idColumn: 'key', place: answerPlace },
]

function ofRow(table: string, column: string, place: Column['place']): Column {
  return { table, column, idColumn: 'id', place }
}

const atOnce = 500

export async function resealSecrets(deps: Deps): Promise<Resealed> {
  const parts: Resealed[] = []
  for (const column of columns) parts.push(await resealColumn(deps, column))
  parts.push(await sealPlainHeaders(deps), await resealTools(deps))
  const sum = (of: keyof Resealed) => parts.reduce((all, part) => all + part[of], 0)
  return { resealed: sum('resealed'), unopened: sum('unopened') }
}

type SealedRow = { readonly accountId: AccountId; readonly id: string; readonly sealed: string }

function resealColumn({ sql, box, signal }: Deps, { table, column, idColumn, place }: Column): Promise<Resealed> {
  const [from, value, key] = [sql(table), sql(column), sql(idColumn)]
  return inParts<SealedRow>(signal, {
    read: (after) => sql`
      select account_id, ${key} as id, ${value} as sealed from ${from}
      where (account_id, ${key}) > (${after?.accountId ?? ''}, ${after?.id ?? ''}) and ${value} <> ''
        and not starts_with(${value}, ${box.currentPrefix})
      order by account_id, ${key} limit ${atOnce}`,
    async write({ accountId, id, sealed }) {
      const fresh = resealed(box, sealed, place(accountId, id))
      if (fresh === null) return false
      await sql`
        update ${from} set ${value} = ${fresh}
        where account_id = ${accountId} and ${key} = ${id} and ${value} = ${sealed}`
      return true
    },
  })
}

type PlainRow = { readonly accountId: AccountId; readonly id: string; readonly headers: Record<string, string> }

/** Those of before headers were sealed. */
function sealPlainHeaders({ sql, box, signal }: Deps): Promise<Resealed> {
  return inParts<PlainRow>(signal, {
    read: (after) => sql`
      select account_id, id, headers from webhook_subscriptions
      where (account_id, id) > (${after?.accountId ?? ''}, ${after?.id ?? ''}) and headers <> '{}'
      order by account_id, id limit ${atOnce}`,
    async write({ accountId, id, headers }) {
      const sealed = sealHeaders(box, { accountId, id: id as SubscriptionId }, headers)
      await sql`
        update webhook_subscriptions set sealed_headers = ${sealed}, headers = '{}'
        where account_id = ${accountId} and id = ${id} and headers = ${sql.json(headers)}`
      return true
    },
  })
}

type ToolsRow = { readonly accountId: AccountId; readonly id: CallId; readonly tools: readonly SealedTool[] }

/** Of calls that go on: nobody opens those of the others any more. */
function resealTools({ sql, box, signal }: Deps): Promise<Resealed> {
  return inParts<ToolsRow>(signal, {
    read: (after) => sql`
      select account_id, id, external_tools as tools from calls
      where (account_id, id) > (${after?.accountId ?? ''}, ${after?.id ?? ''}) and outcome is null and not finished
        and external_tools <> '[]'
        and exists (
          select from jsonb_array_elements(external_tools) tool
          where not starts_with(tool->>'signingSecret', ${box.currentPrefix}))
      order by account_id, id limit ${atOnce}`,
    async write({ accountId, id, tools }) {
      const fresh = tools.map((tool) => {
        const place = toolSecretPlace({ accountId, callId: id, name: tool.name })
        return { ...tool, signingSecret: resealed(box, tool.signingSecret, place) }
      })
      if (fresh.some(({ signingSecret }) => signingSecret === null)) return false
      await sql`
        update calls set external_tools = ${sql.json(fresh as never)}
        where account_id = ${accountId} and id = ${id} and external_tools = ${sql.json(tools as never)}`
      return true
    },
  })
}

type Parts<Row> = {
  /** Behind this row, in order. */
  readonly read: (after: Row | undefined) => PromiseLike<readonly Row[]>
  /** False: it does not open. */
  readonly write: (row: Row) => Promise<boolean>
}

async function inParts<Row>(signal: AbortSignal | undefined, { read, write }: Parts<Row>): Promise<Resealed> {
  const counts = { resealed: 0, unopened: 0 }
  for (let after: Row | undefined; !signal?.aborted;) {
    const rows = await read(after)
    for (const row of rows) {
      if (signal?.aborted) return counts
      counts[(await write(row)) ? 'resealed' : 'unopened'] += 1
    }
    if (rows.length < atOnce) return counts
    after = rows.at(-1)
  }
  return counts
}

/** Null: it does not open. */
function resealed(box: RotatingSecretBox, sealed: string, place: string): string | null {
  if (sealed.startsWith(box.currentPrefix)) return sealed
  try {
    return box.seal(box.open(sealed, place), place)
  } catch {
    return null
  }
}
