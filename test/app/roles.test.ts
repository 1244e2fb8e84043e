/** What a process does of the work of the service, what it needs beside, and when it may take new calls. */
import { test } from 'tap'
import { readConfig } from '../../app/config.ts'
import { fullRole, jointGate, roomOf } from '../../app/joint-gate.ts'
import { createReadiness } from '../../app/readiness.ts'
import type { Heard } from '../../actors/node/node-silence.ts'
import { openGate, type LoadGate } from '../../model/load-gate.ts'
import { allRoles, type Role } from '../../model/roles.ts'
import { createRecordedTelemetry } from '../fake/recorded-telemetry.ts'
import { newId } from '../scenes/tenant.ts'

const shared = { NATS_URL: 'nats://127.0.0.1:4222', DATABASE_URL: 'postgres://db/parley' }
const complaintOf = (environment: Record<string, string>): string => {
  try {
    readConfig(environment)
    return ''
  } catch (error) {
    return String(error)
  }
}

test('a process does everything unless ROLES says less, in any order and spelling of the list', async (t) => {
  t.same([...readConfig({}).roles], [...allRoles])
  t.same([...readConfig({ ...shared, ROLES: ' sip , gateway,sip' }).roles], ['gateway', 'sip'])
  t.not(readConfig({ ...shared, ROLES: 'sip' }).sip, null)
  t.equal(readConfig({ ...shared, ROLES: 'gateway,actors' }).sip, null, 'no telephone edge is opened')
})

test('a name that is no role, or none at all, is told with the setting', async (t) => {
  for (const ROLES of ['gateway,api2', 'all', ','])
    t.match(complaintOf({ ...shared, ROLES }), /ROLES.*must be some of gateway, sip, actors, api, mcp/, ROLES)
})

test('what is left to other processes needs a bus and a database that they share, and an address where browsers reach them', async (t) => {
  const { NATS_URL, DATABASE_URL } = shared
  t.match(complaintOf({ ROLES: 'gateway,sip,actors', DATABASE_URL }), /leaves api, mcp to other.*NATS_URL/)
  t.match(complaintOf({ ROLES: 'gateway', NATS_URL }), /leaves sip, actors, api, mcp .*DATABASE_URL/)
  t.match(complaintOf({ ...shared, ROLES: 'actors,api' }), /SIGNALING_URL, or PUBLIC_URL/)
  t.equal(complaintOf({ ...shared, ROLES: 'actors,api', PUBLIC_URL: 'https://calls.example.com' }), '')
  t.equal(complaintOf({ ...shared, ROLES: 'actors' }), '')
  const SIGNALING_URL = 'wss://edge.example.com/v1/signaling/'
  t.match(readConfig({ ...shared, ROLES: 'mcp', SIGNALING_URL }), { signalingUrl: SIGNALING_URL.slice(0, -1) })
  t.match(complaintOf({ SIGNALING_URL: 'https://edge.example.com' }), /SIGNALING_URL/)
})

const node = (roles: readonly Role[], room: number, draining = false): Heard => ({
  nodeId: newId<'node'>(),
  roles: [...roles],
  room,
  draining,
  running: 0,
  holds: false,
})
const peersOf = (...nodes: readonly Heard[]) => ({ heard: () => [...nodes] })

test('room elsewhere is that of those who do the work and stay', async (t) => {
  const peers = peersOf(node(['actors', 'api'], 3), node(['actors'], 4), node(['actors'], 9, true), node(['sip'], 7))
  t.same([roomOf(peers, 'actors'), roomOf(peers, 'sip'), roomOf(peers, 'gateway')], [7, 7, 0])
})

test('a call begins where all that it needs has room, here or elsewhere, and is refused with a wait otherwise', async (t) => {
  const telemetry = createRecordedTelemetry()
  const gateOf = (roles: readonly Role[], ...nodes: readonly Heard[]): LoadGate =>
    jointGate(openGate, { roles: new Set(roles), peers: peersOf(...nodes), telemetry })
  t.equal(gateOf([...allRoles]).admit('web_session'), null)
  t.match(gateOf(['gateway']).admit('web_call'), { reason: 'nodes', retryAfterSeconds: Number })
  t.match(gateOf(['gateway'], node(['actors'], 0)).admitPromised('web_call'), { reason: 'nodes' })
  t.equal(gateOf(['gateway'], node(['actors'], 1)).admit('web_call'), null)
  t.match(gateOf(['sip'], node(['gateway'], 5)).refusal('phone_call'), { reason: 'nodes' })
  const holding = { ...node(['actors'], 0), holds: true }
  t.equal(gateOf(['sip'], holding).refusal('phone_call'), null, 'a caller may be known from before')
  t.match(gateOf(['gateway'], holding).admit('web_call'), { reason: 'nodes' })
  t.match(gateOf(['actors', 'api'], node(['sip'], 5)).admit('web_session'), { reason: 'nodes' }, 'no gateway')
  t.equal(gateOf(['api'], node(['actors'], 5), node(['gateway'], 5)).admit('web_session'), null)
  t.equal(gateOf(['api']).writing(), null, 'a call that is placed waits for its turn')
  t.same(telemetry.counted[0], { name: 'load.refused', labels: { beginning: 'web_call', reason: 'nodes' }, by: 1 })
})

test('each role is ready when its process is open, has room, and finds what it leaves to others', async (t) => {
  let newCalls: 'taken' | 'refused' = 'taken'
  let others: Heard[] = []
  const open = (roles: readonly Role[]) =>
    createReadiness({
      roles: new Set(roles),
      peers: { heard: () => others },
      calls: { newCalls: () => newCalls },
    })
  const whole = open(allRoles)
  t.same(new Set(Object.values(whole.read())), new Set(['starting']))
  whole.started()
  t.same(new Set(Object.values(whole.read())), new Set([null]))
  const edge = open(['gateway', 'api'])
  edge.started()
  t.same(edge.read(), { gateway: 'no_peer', api: null })
  others = [node(['actors'], 2)]
  t.same(edge.read(), { gateway: null, api: null })
  newCalls = 'refused'
  t.same(edge.read(), { gateway: 'no_room', api: null })
  t.equal(fullRole(new Set<Role>(['gateway']), { heard: () => others }, 'web_session'), null)
  edge.ending()
  edge.started()
  t.same(edge.read(), { gateway: 'draining', api: 'draining' })
})
