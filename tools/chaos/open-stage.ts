/** Owns what a run stands on: a cluster of its own, callers, a receiver of webhooks, and the account whose calls are disturbed. */
import { mkdir } from 'node:fs/promises'
import { systemClock as clock } from '../../app/clock.ts'
import { connect, type Sql } from '../../store/sql.ts'
import { openCluster, type Cluster, type ClusterWish } from '../cluster/open-cluster.ts'
import { openCallers, type Callers } from './callers.ts'
import { createRandom } from './random.ts'
import { openTenant, type Tenant } from './tenant.ts'
import { openTold, type Told } from './told.ts'
import { createUdpShaper, type UdpShaper } from './udp-shaper.ts'

export type Stage = {
  readonly cluster: Cluster
  readonly callers: Callers
  readonly shaper: UdpShaper
  readonly told: Told
  /** Beside the service, and not by its way: so that what it holds can be seen. */
  readonly sql: Sql
  readonly tenant: Tenant
}

type Wish = Pick<ClusterWish, 'folder' | 'counts' | 'nodeArgs' | 'settings'> & {
  readonly seed: number
  readonly turns: number
  print(text: string): void
}

const closeWithin = 20_000

/** What is looked for may not wait for room: a gate that refuses calls is another test's. */
const settings = {
  LOAD_GATE: 'off',
  LOG_LEVEL: 'info',
  RATE_LIMIT_PER_ADDRESS: '0',
  RATE_LIMIT_PER_ACCOUNT: '0',
  BAN_AFTER: '0',
}

/** `folder`: of the cluster; its database and its log files stay. `closing` ends all of it. */
export async function openStage(wish: Wish, closing: AsyncDisposableStack): Promise<Stage> {
  const { seed, folder, counts, turns, nodeArgs = [], print } = wish
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const shaper = createUdpShaper({ random: createRandom(seed), clock })
  const callers = await openCallers({ shaper })
  closing.defer(() => callers.close())
  const told = await openTold()
  closing.defer(() => told.close())
  const cluster = await openCluster({
    folder,
    counts,
    settings: (name) => ({ ...settings, ...wish.settings?.(name) }),
    nodeArgs,
    tell: (text) => print(`  ${text}`),
  })
  closing.defer(() => cluster.close(closeWithin))
  const sql = connect({ server: { url: cluster.postgres.url }, applicationName: 'parley chaos', maxConnections: 2 })
  closing.defer(() => sql.end({ timeout: 1 }))
  const { APP_SECRET: appSecret } = cluster.settings
  const tenant = await openTenant({ sql, appSecret, turns, phonePort: callers.phonePort, told })
  return { cluster, callers, shaper, told, sql, tenant }
}
