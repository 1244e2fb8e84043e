/** Owns a database that is away for a while, as those see it who ask it. */
import type { Sql } from '../../store/sql.ts'

/** The same database; from `cut` to `mend` nobody reaches it, and from `hold` to `release` no statement that is given JSON with these words in it. */
export function createCutDatabase(sql: Sql) {
  let isCut = false
  let held: { readonly words: string; readonly released: PromiseWithResolvers<void> } | null = null
  const isHeld = (argument: unknown): boolean =>
    held !== null &&
    typeof argument === 'object' &&
    argument !== null &&
    'value' in argument &&
    JSON.stringify(argument.value).includes(held.words)
  const refuse = () => Promise.reject(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }))
  // As with queries: one that nobody waits for, a part of another, fails nobody.
  const refused = () => {
    const query = refuse()
    query.catch(() => {})
    return query
  }
  const get = (_: Sql, key: string): unknown => (key === 'begin' && isCut ? refuse : (Reflect.get(sql, key) as unknown))
  const apply = (_: Sql, self: unknown, given: unknown[]): unknown => {
    const ask = (): unknown => Reflect.apply(sql, self, given)
    if (held && given.some(isHeld)) return held.released.promise.then(ask)
    return isCut ? refused() : ask()
  }
  return {
    sql: new Proxy(sql, { get, apply } as ProxyHandler<Sql>),
    cut: () => void (isCut = true),
    mend: () => void (isCut = false),
    hold: (words: string) => void (held = { words, released: Promise.withResolvers() }),
    release(): void {
      held?.released.resolve()
      held = null
    },
  }
}
