/** How a process without actors has calls run elsewhere: facts find the owner, and a call that nobody has a node with room. */
import { test, type Test } from 'tap'
import { createFarRouter } from '../../actors/node/far-router.ts'
import { nothingSeen } from '../../store/nodes.ts'
import type { Heard } from '../../actors/node/node-silence.ts'
import { createPlacement, listenForPlaced } from '../../actors/node/placement.ts'
import { listenForWork, tellWaits } from '../../actors/node/wakes.ts'
import type { CallId } from '../../model/ids.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { until } from '../scenes/in-time.ts'
import { openCallNode, openShared, type CallNode, type Shared } from '../scenes/call-node.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const here = { type: 'client_connected' } as const

async function open(t: Test) {
  const shared = await openShared(t)
  const { sql, bus } = shared
  const nodes = [await openCallNode(shared), await openCallNode(shared)] as const
  const leaving = new Set<CallNode>()
  const begun: CallNode[] = []
  for (const node of nodes) {
    t.teardown(() => node.close())
    await node.switchboard.start()
    const placed = listenForPlaced(bus, node.nodeId, {
      router: node.switchboard,
      isLeaving: () => leaving.has(node),
      begins: () => void begun.push(node),
    })
    t.teardown(async () => placed.close())
  }
  const told = new Map<CallNode, Partial<Heard>>(nodes.map((node) => [node, {}]))
  const heard = (): Heard[] =>
    [...told].map(([{ nodeId }, more]) => ({
      nodeId,
      roles: ['actors'],
      room: 10,
      running: 0,
      draining: false,
      holds: false,
      ...more,
    }))
  const peers = { heard, sightings: () => nothingSeen }
  // Both of the two that are compared are different ones.
  let drawn = 0
  const random = (): number => (drawn++ % 2 === 0 ? 0 : 0.99)
  const placement = createPlacement({ bus, peers, random })
  const router = createFarRouter({ sql, bus, peers, placement })
  const create = async (): Promise<CallId> => {
    const { accountId, workerId } = await createTenant(sql, { slug: newId() })
    const { callId } = await nodes[0].createWebCall(accountId, { workerId })
    createScriptedLeg(bus, callId)
    return callId
  }
  return { shared, nodes, told, leaving, begun, placement, router, create }
}

const ownerOf = async ({ sql }: Shared, callId: CallId) =>
  (await sql<{ owner: string | null; epoch: number }[]>`select owner, epoch from calls where id = ${callId}`)[0]

test('a call that nobody has begins at the node that tells more room, and its next facts find it there', async (t) => {
  const { shared, nodes, told, begun, router, create } = await open(t)
  told.set(nodes[0], { room: 3 })
  told.set(nodes[1], { room: 4 })
  const callId = await create()
  t.equal(await router.route(callId, here), true)
  t.match(await ownerOf(shared, callId), { owner: nodes[1].nodeId, epoch: 1 })
  t.same(begun, [nodes[1]])
  told.set(nodes[0], { room: 1_000 })
  t.equal(await router.route(callId, { type: 'hang_up_requested', by: 'service' }), true)
  t.same(begun, [nodes[1]], 'it was not placed again')
  t.equal(nodes[0].switchboard.running(), 0)
})

test('a node that leaves, is gone or tells that it drains is passed over; where nobody runs calls the fact is not taken', async (t) => {
  const { shared, nodes, told, leaving, router, placement, create } = await open(t)
  told.set(nodes[1], { room: 1_000 })
  leaving.add(nodes[1])
  const callId = await create()
  t.equal(await router.route(callId, here), true)
  t.match(await ownerOf(shared, callId), { owner: nodes[0].nodeId })

  told.set(nodes[0], { draining: true })
  told.set(nodes[1], { roles: ['gateway', 'sip'] })
  t.equal(placement.choose(), null)
  const second = await create()
  t.equal(await router.route(second, here), false)
  t.match(await ownerOf(shared, second), { owner: null })
  t.equal(await router.route(newId<'call'>(), here), false, 'nor is one for a call that there is not')
})

test('a call that was written as the node’s that is to run it is begun there, with its first epoch', async (t) => {
  const { shared, nodes, told, router, create } = await open(t)
  told.set(nodes[1], { room: 1_000 })
  const callId = await create()
  await shared.sql`update calls set owner = ${nodes[0].nodeId} where id = ${callId}`
  t.equal(await router.route(callId, here), true)
  t.match(await ownerOf(shared, callId), { owner: nodes[0].nodeId, epoch: 1 })
})

test('of those who look for work one hears that some waits, and what it cannot read wakes nobody', async (t) => {
  const { bus } = await openShared(t)
  const woken: string[] = []
  const wake = (work: string) => () => void woken.push(work)
  const all = {
    deliveries: wake('deliveries'),
    dispatcher: wake('dispatcher'),
    scheduler: wake('scheduler'),
    processing: wake('processing'),
  }
  for (const listening of [listenForWork(bus, all), listenForWork(bus, all)]) t.teardown(async () => listening.close())
  bus.publish('work.waits', new TextEncoder().encode('{"work":"toString"}'))
  bus.publish('work.waits', new TextEncoder().encode('nonsense'))
  tellWaits(bus, 'dispatcher')
  tellWaits(bus, 'processing')
  await until(() => woken.length >= 2)
  await bus.flush()
  t.same(woken, ['dispatcher', 'processing'])
})
