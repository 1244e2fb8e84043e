/** Owns the rows of trunks, and whose calls go their way. Passwords are sealed at rest. */
import type { Clock } from '../model/clock.ts'
import type { AccountId, NewId, TrunkId, WorkerId } from '../model/ids.ts'
import { Problem } from '../model/problem.ts'
import {
  minPasswordLength,
  toTrunk,
  trunkIssuesOf,
  trunkStateOf,
  type TrunkAuthor,
  type TrunkFacts,
  type Trunks,
  type TrunkSettings,
  type TrunkSurroundings,
} from '../model/trunk.ts'
import { withoutNulls } from '../model/without-nulls.ts'
import { isWideNetwork, plainNetworkOf } from '../net/networks.ts'
import { givenColumns } from './given-columns.ts'
import { secretPlace, type SecretBox } from './secret-box.ts'
import { orderRemoval, walkRemoval } from './removals.ts'
import { requireRoom } from './room.ts'
import type { Sql, Transaction } from './sql.ts'
import { certificateIssuesOf } from './trunk-certificate.ts'
import { replaceTrunkAddresses } from './trunk-addresses.ts'
import { replaceTrunkExtensions } from './trunk-extensions.ts'
import { forgetRealms, listRealms } from './trunk-realms.ts'
import { findTrunkState } from './trunk-states.ts'
import { namedWorkers, requireWorkers } from './workers.ts'

type Deps = {
  readonly sql: Sql
  readonly box: SecretBox
  readonly clock: Clock
  readonly newId: NewId
  /** Ms; then the calls of a removed trunk lose it in the background. Absent: they all do at once. */
  readonly removalWithin?: number
  /** A trunk was made, changed or removed, and that is committed. */
  readonly changed?: () => void
}

export function createTrunks({ changed = () => undefined, ...deps }: Deps): Trunks {
  const { create, change, remove, ...reads } = createSilentTrunks(deps)
  const told = async <Done>(work: Promise<Done>): Promise<Done> => {
    const done = await work
    changed()
    return done
  }
  return {
    ...reads,
    create: (...asked) => told(create(...asked)),
    change: (...asked) => told(change(...asked)),
    remove: (...asked) => told(remove(...asked)),
  }
}

function createSilentTrunks({ sql, box, clock, newId, removalWithin }: Omit<Deps, 'changed'>): Trunks {
  return {
    async list(accountId) {
      return (await readTrunks(sql, accountId, null)).map(toTrunk)
    },
    async find(accountId, id) {
      const [trunk] = await readTrunks(sql, accountId, id)
      return trunk ? toTrunk(trunk) : null
    },
    async stateOf(accountId, id) {
      const found = await findTrunkState(sql, accountId, id)
      return found && trunkStateOf(found.settings, found.state, await listRealms(sql, id))
    },
    async create(
      accountId,
      { name, direction = 'both', isActive = true, password, tlsKey, workerIds = [], ...settings },
      author,
    ) {
      requireNarrow(settings, [], author)
      await requireRoom(sql, accountId, 'trunks')
      const [id, now] = [newId<'trunk'>(), clock.now()]
      const row = { id, accountId, name, direction, isActive, createdAt: now, updatedAt: now }
      return sql.begin(async (tx) => {
        const workers = await requireWorkers(tx, accountId, namedWorkers(workerIds))
        const config = settled(settings, { passwordSet: Boolean(password), workerIds: workers })
        requireCertificate(settings.tlsCertificate ?? null, tlsKey ?? null, now)
        const sealed = sealedIn(box, { accountId, id }, { password: password || null, tlsKey: tlsKey || null })
        await tx`insert into trunks ${tx({ ...row, config: tx.json(config), ...sealed })}`
        await linkWorkers(tx, accountId, id, workers)
        await replaceTrunkAddresses(tx, accountId, id, config)
        await replaceTrunkExtensions(tx, accountId, id, config)
        const [trunk] = await readTrunks(tx, accountId, id)
        return toTrunk(trunk as TrunkFacts)
      })
    },
    async change(
      accountId,
      id,
      { name, direction, isActive, password, tlsKey: given, workerIds, ...settings },
      author,
    ) {
      // A key without its certificate is of no use.
      const tlsKey = settings.tlsCertificate === null && given === undefined ? null : given
      const plain = { name, direction, isActive, ...sealedIn(box, { accountId, id }, { password, tlsKey }) }
      const columns = givenColumns({ ...plain, updatedAt: clock.now() })
      return sql.begin(async (tx) => {
        const stored = await lockSettings(tx, accountId, id)
        if (!stored) return null
        requireNarrow(withoutNulls(settings), stored.config.allowedAddresses ?? [], author)
        const workers = workerIds && (await requireWorkers(tx, accountId, namedWorkers(workerIds)))
        if (stored.direction === 'outbound' && direction && direction !== 'outbound' && password === undefined)
          requireLongPassword(stored.password && box.open(stored.password, passwordPlace({ accountId, id })))
        const passwordSet = password === undefined ? stored.passwordSet : password !== null
        const surroundings = { passwordSet, workerIds: workers ?? stored.workerIds }
        if (tlsKey !== undefined || settings.tlsCertificate !== undefined) {
          const kept = tlsKey === undefined && stored.tlsKey
          const key = kept ? box.open(kept, tlsKeyPlace({ accountId, id })) : tlsKey
          const { tlsCertificate = stored.config.tlsCertificate } = settings
          requireCertificate(tlsCertificate ?? null, key ?? null, clock.now())
        }
        const merged = settled({ ...stored.config, ...settings }, surroundings)
        await tx`
          update trunks set ${tx(columns)}, config = ${tx.json(merged)} where account_id = ${accountId} and id = ${id}`
        // Named anew or taken away: what was learned before is of no use.
        if (settings.realm !== undefined) await forgetRealms(tx, accountId, id)
        if (workers) await linkWorkers(tx, accountId, id, workers)
        await replaceTrunkAddresses(tx, accountId, id, merged)
        await replaceTrunkExtensions(tx, accountId, id, merged)
        const [trunk] = await readTrunks(tx, accountId, id)
        return toTrunk(trunk as TrunkFacts)
      })
    },
    async remove(accountId, id) {
      const removal = await sql.begin(async (tx) => {
        const { count } = await tx`delete from trunks where account_id = ${accountId} and id = ${id}`
        return count === 0 ? null : orderRemoval(tx, { kind: 'trunk', accountId, subjectId: id })
      })
      // Calls and refusals lose the link, those that run as well. Nobody holds the row of a trunk and then waits for that of a call, or the other way round.
      if (removal) await walkRemoval(sql, removal, removalWithin)
      return removal !== null
    },
  }
}

type TrunkKey = { readonly accountId: AccountId; readonly id: TrunkId }
export const passwordPlace = ({ accountId, id }: TrunkKey): string => secretPlace('trunks.password', accountId, id)
export const tlsKeyPlace = ({ accountId, id }: TrunkKey): string => secretPlace('trunks.tls_key', accountId, id)

function sealedIn<Given extends string | null | undefined>(
  box: SecretBox,
  trunk: TrunkKey,
  { password, tlsKey }: { readonly password: Given; readonly tlsKey: Given },
) {
  return {
    password: password && box.seal(password, passwordPlace(trunk)),
    tlsKey: tlsKey && box.seal(tlsKey, tlsKeyPlace(trunk)),
  }
}

/** One, or all of the account in the order they were made. */
function readTrunks(sql: Sql | Transaction, accountId: AccountId, id: TrunkId | null): Promise<TrunkFacts[]> {
  return sql<TrunkFacts[]>`
    select id, account_id, name, direction, is_active, password is not null as password_set,
      tls_key is not null as tls_key_set, config, created_at, updated_at,
      array(select worker_id from trunk_workers where trunk_id = trunks.id order by worker_id) as worker_ids
    from trunks where account_id = ${accountId} and (${id}::text is null or id = ${id}) order by created_at, id`
}

type LockedTrunk = Pick<TrunkFacts, 'config' | 'direction' | 'passwordSet'> & {
  /** Sealed, as is the key. */
  readonly password: string | null
  readonly tlsKey: string | null
  readonly workerIds: string[]
}

/** Until the transaction ends: of two changes at once each sees what the other left. */
async function lockSettings(tx: Transaction, accountId: AccountId, id: TrunkId) {
  const [row] = await tx<LockedTrunk[]>`
    select config, direction, password, password is not null as password_set, tls_key,
      array(select worker_id from trunk_workers where trunk_id = trunks.id) as worker_ids
    from trunks where account_id = ${accountId} and id = ${id} for update`
  return row ?? null
}

/** Replaces the whole list. */
async function linkWorkers(tx: Transaction, accountId: AccountId, id: TrunkId, workers: readonly WorkerId[]) {
  await tx`delete from trunk_workers where account_id = ${accountId} and trunk_id = ${id}`
  await tx`
    insert into trunk_workers (account_id, trunk_id, worker_id)
    select ${accountId}::text, ${id}::text, unnest(${[...workers]}::text[])`
}

type GivenSettings = { readonly [Key in keyof TrunkSettings]: TrunkSettings[Key] | null | undefined }
/** Of a trunk that calls come in by from now on. */
function requireLongPassword(password: string | null): void {
  if (password === null || password.length >= minPasswordLength) return
  const message = `must have at least ${minPasswordLength} characters, because calls will come in by it`
  throw new Problem('VALIDATION_FAILED', 'The password of the trunk is too short.', [{ path: 'password', message }])
}

/** As they are stored. Throws Problem VALIDATION_FAILED for settings that do not go together. */
function settled(given: GivenSettings, surroundings: TrunkSurroundings): TrunkSettings {
  const settings: TrunkSettings = withoutNulls(given)
  const issues = trunkIssuesOf(settings, surroundings)
  if (issues.length > 0) throw new Problem('VALIDATION_FAILED', 'The settings of the trunk do not go together.', issues)
  return settings
}

/**
 * Throws Problem VALIDATION_FAILED with the path of each network that an account may not open its trunk to: calls of other accounts would come from
 * there too, and everybody in it counts as known. `before` were let in already.
 */
function requireNarrow(
  { allowedAddresses = [] }: TrunkSettings,
  before: readonly string[],
  author: TrunkAuthor = 'operator',
): void {
  if (author === 'operator') return
  const known = new Set(before.map(plainNetworkOf))
  const message =
    'must be no wider than /16 (IPv4) or /48 (IPv6); the operator opens wider ones (npm run admin -- trunk widen)'
  const issues = allowedAddresses.flatMap((text, index) =>
    isWideNetwork(text) && !known.has(plainNetworkOf(text)) ? [{ path: `allowedAddresses.${index}`, message }] : [],
  )
  if (issues.length > 0) throw new Problem('VALIDATION_FAILED', `allowedAddresses ${message}`, issues)
}

/** Throws Problem VALIDATION_FAILED for a certificate and a key that cannot be shown together. */
function requireCertificate(cert: string | null, key: string | null, now: number): void {
  const issues = certificateIssuesOf(cert, key, now)
  if (issues.length > 0) throw new Problem('VALIDATION_FAILED', 'The certificate of the trunk cannot be used.', issues)
}
