/**
 * Owns the keys by which the authorization server signs: sealed in the database, the same for every process of the service, and replaced with
 * time. A new one is there for a while before it signs, so that every process verifies by it when the first one signs; an old one verifies
 * until nothing is left that it signed.
 */
import type { RotatingSecretBox } from './secret-box.ts'
import { secretPlace } from './secret-box.ts'
import type { Sql, Transaction } from './sql.ts'

export const oauthKeyKinds = ['token', 'cookie'] as const
export type OauthKeyKind = (typeof oauthKeyKinds)[number]

/** `text` is what `make` made. */
export type OauthKey = {
  readonly id: string
  readonly kind: OauthKeyKind
  readonly text: string
  readonly activeFrom: number
}

const day = 24 * 3_600_000
export const rotatesAfter = 90 * day
/** Ms that a new key is known before it signs. Processes look more often than that. */
export const knownBefore = 3_600_000
/** Ms that a key verifies after another took its place: longer than anything it signed. */
const verifiesFor = 2 * day

type Deps = {
  readonly sql: Sql
  readonly box: RotatingSecretBox
  readonly now: number
  readonly newId: () => string
  readonly make: (kind: OauthKeyKind) => Promise<string>
  /** A key does not open: the secret that sealed it is lost, and it with it. */
  readonly unopened: (id: string) => void
}

type Row = { readonly id: string; readonly kind: OauthKeyKind; readonly sealed: string; readonly activeFrom: number }

const placeOf = (id: string): string => secretPlace('oauth_keys.sealed', id)

/** The one that signs first, then the newest. What is missing or too old is made, by one process at a time. `rotate`: also what is not old. */
export async function loadOauthKeys(deps: Deps, { rotate = false } = {}): Promise<readonly OauthKey[]> {
  const rows = await rowsOf(deps.sql)
  const known = opened(deps, rows)
  const isSettled = !rotate && oauthKeyKinds.every((kind) => isFresh(known, kind, deps.now))
  // Of former keys of the box all that open are sealed anew.
  const isCurrent = known.every(({ id }) =>
    rows.some((row) => row.id === id && row.sealed.startsWith(deps.box.currentPrefix)),
  )
  if (isSettled && isCurrent) return inOrder(known, deps.now)
  return deps.sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtext('oauth_keys'))`
    const keys = opened(deps, await rowsOf(tx))
    const made: OauthKey[] = []
    for (const kind of oauthKeyKinds)
      if (rotate || !isFresh(keys, kind, deps.now)) made.push(await makeKey(tx, deps, kind, keys))
    const all = [...keys, ...made]
    const ended = all.filter((key) => isOver(all, key, deps.now))
    await tx`delete from oauth_keys where id = any(${ended.map(({ id }) => id)})`
    await reseal(tx, deps, keys)
    return inOrder(
      all.filter((key) => !ended.includes(key)),
      deps.now,
    )
  })
}

const rowsOf = (sql: Sql | Transaction): Promise<Row[]> =>
  sql<Row[]>`select id, kind, sealed, active_from from oauth_keys order by active_from, id`

function opened({ box, unopened }: Deps, rows: readonly Row[]): OauthKey[] {
  return rows.flatMap(({ sealed, ...key }) => {
    try {
      return [{ ...key, text: box.open(sealed, placeOf(key.id)) }]
    } catch {
      unopened(key.id)
      return []
    }
  })
}

const ofKind = (keys: readonly OauthKey[], kind: OauthKeyKind): OauthKey[] => keys.filter((key) => key.kind === kind)

/** The newest says when the next is due. */
function isFresh(keys: readonly OauthKey[], kind: OauthKeyKind, now: number): boolean {
  const newest = ofKind(keys, kind).at(-1)
  return newest !== undefined && now < newest.activeFrom + rotatesAfter
}

/** Nobody knows the first one of all before it signs. */
async function makeKey(tx: Transaction, deps: Deps, kind: OauthKeyKind, keys: readonly OauthKey[]): Promise<OauthKey> {
  const isFirst = ofKind(keys, kind).length === 0
  const id = deps.newId()
  const text = await deps.make(kind)
  const activeFrom = isFirst ? deps.now : deps.now + knownBefore
  await tx`
    insert into oauth_keys (id, kind, sealed, created_at, active_from)
    values (${id}, ${kind}, ${deps.box.seal(text, placeOf(id))}, ${deps.now}, ${activeFrom})`
  return { id, kind, text, activeFrom }
}

/** Another has signed in its place for long enough. */
function isOver(keys: readonly OauthKey[], key: OauthKey, now: number): boolean {
  const next = ofKind(keys, key.kind).find(({ activeFrom }) => activeFrom > key.activeFrom)
  return next !== undefined && now >= next.activeFrom + verifiesFor
}

async function reseal(tx: Transaction, { box }: Deps, keys: readonly OauthKey[]): Promise<void> {
  for (const { id, text } of keys)
    await tx`
      update oauth_keys set sealed = ${box.seal(text, placeOf(id))}
      where id = ${id} and not starts_with(sealed, ${box.currentPrefix})`
}

function inOrder(keys: readonly OauthKey[], now: number): readonly OauthKey[] {
  const newestFirst = keys.toReversed()
  const signs = oauthKeyKinds.flatMap(
    (kind) => newestFirst.find((key) => key.kind === kind && key.activeFrom <= now) ?? [],
  )
  return [...signs, ...newestFirst.filter((key) => !signs.includes(key))]
}
