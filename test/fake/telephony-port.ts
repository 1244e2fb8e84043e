/** Owns the `Telephony` port in memory: trunks as the test made them, calls as they came, everything written down. */
import type { AccountId, CallId, TrunkId, WorkerId } from '../../model/ids.ts'
import type {
  InboundCall,
  InboundRoute,
  DialogHeir,
  RealmNews,
  Refusal,
  RefusedArrival,
  Telephony,
  TrunkAccess,
} from '../../model/telephony.ts'
import type { DialogFacts } from '../../model/sip-dialog.ts'
import type { TrunkSettings, TrunkState } from '../../model/trunk.ts'
import { newId } from '../scenes/tenant.ts'

export type TelephonyPort = Telephony & {
  /** Dialogs of answered calls, as they are known beside the edge. */
  readonly kept: Map<CallId, DialogFacts>
  /** In the place of an edge that died. */
  tellPeer: DialogHeir['tell']
  askOver: DialogHeir['askOver']
  /** What `dialogs.haveHeirs` answers, and what was left to them. */
  haveHeirs: boolean
  readonly left: CallId[]
  readonly accountId: AccountId
  readonly workerId: WorkerId
  /** Number of the one worker. */
  readonly number: string
  /** Those that deliver, are kept and lead out; the first one delivers. */
  trunks: TrunkAccess[]
  mustAuthenticate: boolean
  /** What `knows` answers. */
  knowsAll: boolean
  /** In place of the next answers. */
  refuses: Partial<Record<'route' | 'receive' | 'begin' | 'waysOut' | 'refusalOf', RefusedArrival>>
  /** What `mayDial` answers. */
  leave: Awaited<ReturnType<Telephony['mayDial']>>
  readonly received: InboundCall[]
  readonly begun: CallId[]
  readonly carried: { readonly callId: CallId; readonly trunkId: TrunkId }[]
  readonly refusals: Refusal[]
  /** What names led to, by trunk. */
  readonly sources: Map<TrunkId, { readonly name: string; readonly addresses: readonly string[] }[]>
  readonly realms: Map<TrunkId, RealmNews[]>
  readonly reports: Map<TrunkId, Omit<TrunkState, 'updatedAt'>>
  /** Asked before each `begin`: holds it back. */
  beforeBegin: () => Promise<void>
}

export function trunkOf(settings: TrunkSettings, password: string | null = null, name = 'Carrier'): TrunkAccess {
  return { id: newId<'trunk'>(), accountId, name, settings, password }
}

const accountId = newId<'account'>()

export function createTelephonyPort(...trunks: TrunkAccess[]): TelephonyPort {
  const workerId = newId<'worker'>()
  const refused = (details: string, sipStatus = 404): RefusedArrival => ({
    reason: 'unknown_number',
    details,
    accountId: null,
    trunkId: null,
    sipStatus,
  })
  const port: TelephonyPort = {
    kept: new Map(),
    tellPeer: async () => undefined,
    askOver: async () => null,
    haveHeirs: false,
    left: [],
    dialogs: {
      held: (callId, _trunkId, dialog) => void port.kept.set(callId, dialog),
      over: (callId) => void port.kept.delete(callId),
      haveHeirs: async () => port.haveHeirs,
      leave: async (callIds) => void port.left.push(...callIds),
      inherit(heir) {
        port.tellPeer = heir.tell
        port.askOver = heir.askOver
        return { close: async () => undefined }
      },
    },
    accountId,
    workerId,
    number: '+4930123456',
    trunks,
    mustAuthenticate: false,
    knowsAll: true,
    knows: async () => port.knowsAll,
    refuses: {},
    leave: 'may',
    received: [],
    begun: [],
    carried: [],
    refusals: [],
    sources: new Map(),
    realms: new Map(),
    reports: new Map(),
    beforeBegin: async () => undefined,
    async route({ called }): Promise<InboundRoute | RefusedArrival> {
      const [trunk] = port.trunks
      if (port.refuses.route || !trunk) return port.refuses.route ?? refused('no trunk')
      if (!called.includes(port.number)) return refused(`nobody has ${called.join(', ')}`)
      return { trunk, workerId, toNumber: port.number, mustAuthenticate: port.mustAuthenticate }
    },
    async receive(call) {
      if (port.refuses.receive) return port.refuses.receive
      port.received.push(call)
      return { callId: newId<'call'>() }
    },
    async begin(callId) {
      await port.beforeBegin()
      port.begun.push(callId)
      return !port.refuses.begin
    },
    waysOut: async () => port.refuses.waysOut ?? port.trunks,
    refusalOf: async () => port.refuses.refusalOf ?? null,
    mayDial: async () => port.leave,
    carriedBy: async (callId, trunkId) => void port.carried.push({ callId, trunkId }),
    refused: (refusal) => void port.refusals.push(refusal),
    keep: async () => ({ trunks: port.trunks, until: Date.now() + 60_000 }),
    trunkOf: async (accountId, trunkId) =>
      port.trunks.find((trunk) => trunk.accountId === accountId && trunk.id === trunkId) ?? null,
    found: async (trunkId, source) => void port.sources.set(trunkId, [...(port.sources.get(trunkId) ?? []), source]),
    learnRealm: async (trunkId, news) => void port.realms.set(trunkId, [...(port.realms.get(trunkId) ?? []), news]),
    report: async (trunkId, state) => void port.reports.set(trunkId, state),
  }
  return port
}
