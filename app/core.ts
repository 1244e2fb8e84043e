/** Owns the foundation of a process: database, keys, bus and recordings; what every other part is given. */
import type { KeyObject } from 'node:crypto'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { createCallsTelling, type CallsTelling } from '../actors/call/life/call-telling.ts'
import { createJoinedBus } from '../actors/bus/joined-bus.ts'
import { createLocalBus, type LocalBus } from '../actors/bus/local-bus.ts'
import { createNatsBus } from '../actors/bus/nats-bus.ts'
import { observedBus } from '../actors/bus/observed-bus.ts'
import { createDueWatch, type DueWatch } from '../actors/rounds/due-watch.ts'
import type { NodeBus } from '../model/bus.ts'
import type { Clock } from '../model/clock.ts'
import type { CallId, NewId, NodeId } from '../model/ids.ts'
import type { Log } from '../model/log.ts'
import type { RecordingStore } from '../model/recording-store.ts'
import { noTelemetry, type Telemetry } from '../model/telemetry.ts'
import { findCallTraces } from '../store/call-traces.ts'
import { makeFolder } from '../store/make-folder.ts'
import { countForeignSecrets } from '../store/foreign-secrets.ts'
import { createOneQuery } from '../store/one-query.ts'
import { openDatabase, type Database } from '../store/open-database.ts'
import type { RecordingPlaces } from '../store/recording-places.ts'
import { boxOf, loadAppKeys, subkeys, type RotatingSecretBox } from '../store/secret-box.ts'
import type { Sql } from '../store/sql.ts'
import { systemClock as clock } from './clock.ts'
import type { Config } from './config.ts'
import { createNewId } from './new-id.ts'
import { openRecordings } from './recordings.ts'
import { atBus, atDatabase, inDataFolder } from './failing-places.ts'

export type Core = {
  readonly sql: Sql
  /** The same database by connections of their own: for REST and whatever else is asked from outside. */
  readonly requests: Sql
  /** The embedded database that another process has started. */
  readonly joinsDatabase?: boolean
  /** Migrations that this start has applied. */
  readonly migrated?: number
  /** Stored secrets that no key of this process opens. */
  readonly foreignSecrets?: number
  /** Queries under way. */
  readonly queries?: Database['queries']
  /** Of pgvector in it. */
  readonly vectorSchema?: string | null
  readonly bus: NodeBus
  readonly box: RotatingSecretBox
  readonly recordingUrlKey: KeyObject
  /** Links that were signed by a key of before are good until they expire. */
  readonly formerRecordingUrlKeys?: readonly KeyObject[]
  readonly recordings: RecordingStore & Pick<RecordingPlaces, 'beginWriting'>
  /** Who of this process has durable work to do hears when some is due. */
  readonly dueWatch: DueWatch
  readonly nodeId: NodeId
  readonly newId: NewId
  readonly clock: Clock
  readonly log: Log
  readonly telemetry: Telemetry
  /** Absent: nobody traces. */
  readonly knowTrace?: (callId: CallId) => Promise<void>
  /** Of the calls that have an actor here. */
  readonly telling?: CallsTelling
}

export const newId = createNewId(clock.now)

/** What a process tells, and where to: to people as lines, to those who watch it as numbers. */
export type Telling = { readonly log: Log; readonly telemetry?: Telemetry }

export async function openCore(
  config: Config,
  { log, telemetry = noTelemetry }: Telling,
  closing: AsyncDisposableStack,
): Promise<Core> {
  await inDataFolder(config, () => makeFolder(config.recordingsDir))
  await inDataFolder(config, () => access(config.recordingsDir, constants.W_OK))
  const nodeId = newId<'node'>()
  const database = await atDatabase(config, () => openDatabase({ ...config, nodeId, log, telemetry }))
  closing.defer(() => database.close())
  const appKeys = await inDataFolder(config, () => loadAppKeys(config))
  const [recordingUrlKey, ...formerRecordingUrlKeys] = subkeys(appKeys, 'recording-urls')
  const foreignSecrets = await atDatabase(config, () => countForeignSecrets(database.sql, appKeys))
  const bus = await openBus(config, { log, telemetry })
  closing.defer(() => bus.close())
  const { sql, requests } = database
  const recordings = await inDataFolder(config, () => openRecordings(config, { sql, nodeId, clock, log }, closing))
  const dueWatch = createDueWatch({ sql, clock, log })
  closing.defer(() => dueWatch.close())
  return {
    sql,
    requests,
    queries: database.queries,
    joinsDatabase: database.isJoined,
    migrated: database.applied,
    foreignSecrets,
    vectorSchema: database.vectorSchema,
    bus,
    box: boxOf(appKeys),
    recordingUrlKey,
    formerRecordingUrlKeys,
    recordings,
    dueWatch,
    nodeId,
    newId,
    clock,
    log,
    telemetry,
    telling: createCallsTelling({ telemetry }),
    ...knowingTraces({ sql, telemetry, log }),
  }
}

/** Whoever works on rows of a call that another process runs learns by which trace it was asked for. Without that the call is a trace of its own. */
function knowingTraces({ sql, telemetry, log }: Pick<Core, 'sql' | 'telemetry' | 'log'>): Pick<Core, 'knowTrace'> {
  const { follow, follows } = telemetry
  if (!follow || !follows) return {}
  const find = createOneQuery<CallId, string | null>({
    keyOf: (callId) => callId,
    query: (callIds) => findCallTraces(sql, callIds),
  })
  const know = async (callId: CallId): Promise<void> => {
    if (follows(callId)) return
    try {
      follow(callId, (await find(callId)) ?? null)
    } catch (error) {
      log.info('the trace of a call could not be looked up', { callId, error })
    }
  }
  return { knowTrace: know }
}

async function openBus({ natsUrl }: Config, telling: Required<Telling>): Promise<NodeBus> {
  const { telemetry } = telling
  const local = createLocalBus({ ...telling, clock })
  const bus = natsUrl === null ? local : await joined(local, natsUrl, telling)
  return telemetry.isOn ? observedBus(bus, { telemetry, now: () => performance.now() }) : bus
}

async function joined(local: LocalBus, url: string, telling: Required<Telling>): Promise<NodeBus> {
  const wire = await atBus(url, () => createNatsBus({ url, ...telling, clock, name: 'parley', hearsItself: false }))
  return createJoinedBus({ local, wire })
}
