/** Owns how tests ask whose a key is, at a time of their own. */
import { createKeyLookup, type KeyOwner } from '../../store/api-keys.ts'
import type { Sql } from '../../store/sql.ts'

export const findAccountByKey = (sql: Sql, key: string, now: number): Promise<KeyOwner | null> =>
  createKeyLookup(sql, () => now)(key)
