/** Owns a database that is away for a while, as those see it who ask it. */
import type { Sql } from '../../store/sql.ts'

/** The same database; from `cut` to `mend` nobody reaches it. */
export function createCutDatabase(sql: Sql) {
  let isCut = false
  const refuse = () => Promise.reject(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
  // As with queries: one that nobody waits for, a part of another, fails nobody.
  const refused = () => {
    const query = refuse()
    query.catch(() => {})
    return query
  }
  const get = (_: Sql, key: string): unknown => (key === 'begin' && isCut ? refuse : (Reflect.get(sql, key) as unknown))
  const apply = (_: Sql, self: unknown, given: unknown[]): unknown =>
    isCut ? refused() : Reflect.apply(sql, self, given)
  return {
    sql: new Proxy(sql, { get, apply } as ProxyHandler<Sql>),
    cut: () => void (isCut = true),
    mend: () => void (isCut = false),
  }
}
