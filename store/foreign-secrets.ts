/**
 * Owns the count of stored secrets that no key of this process opens: the passwords and keys of trunks, and what signs and accompanies webhooks. By how
 * they begin, so that nothing is opened for it. Those of before that do not say by which key are not counted.
 */
import { boxOf, sealedPrefixesOf, type loadAppKeys } from './secret-box.ts'
import type { Sql } from './sql.ts'

type Keys = Awaited<ReturnType<typeof loadAppKeys>>

/** `v2.`, and which key. */
const prefixLength = (keys: Keys): number => boxOf(keys).currentPrefix.length

export async function countForeignSecrets(sql: Sql, keys: Keys): Promise<number> {
  const known = sealedPrefixesOf(keys)
  const [row] = await sql<{ count: number }[]>`
    select count(*) as count from (
      select password as sealed from trunks
      union all select tls_key from trunks
      union all select signing_secret from webhook_subscriptions
      union all select former_secret from webhook_subscriptions
      union all select sealed_headers from webhook_subscriptions
    ) secrets
    where starts_with(sealed, 'v2.') and not left(sealed, ${prefixLength(keys)}) = any(${known}::text[])`
  return row?.count ?? 0
}
