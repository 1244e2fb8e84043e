/** Owns by which users the peers of a trunk call its workers: its extensions, and the name of its line. Found by user, whosever the trunk is. */
import type { AccountId, TrunkId } from '../model/ids.ts'
import type { TrunkSettings } from '../model/trunk.ts'
import type { Transaction } from './sql.ts'

export async function replaceTrunkExtensions(
  tx: Transaction,
  accountId: AccountId,
  trunkId: TrunkId,
  settings: TrunkSettings,
): Promise<void> {
  const extensions = extensionsOf(settings)
  const workerIds = extensions.map(({ workerId }) => workerId ?? '')
  await tx`delete from trunk_extensions where account_id = ${accountId} and trunk_id = ${trunkId}`
  await tx`
    insert into trunk_extensions (account_id, trunk_id, extension, worker_id)
    select ${accountId}::text, ${trunkId}::text, extension, nullif(worker_id, '')
    from unnest(${extensions.map(({ user }) => user)}::text[], ${workerIds}::text[]) as named (extension, worker_id)`
}

/** What the trunk names goes before what follows from the name of its line. */
function extensionsOf({ extensions = [], username }: TrunkSettings): NonNullable<TrunkSettings['extensions']> {
  const isNamed = !username || extensions.some(({ user }) => user === username)
  return isNamed ? extensions : [...extensions, { user: username }]
}
