/** Which calls a node takes as left behind, and which only look like it. */
import { test } from 'tap'
import { claimOrphans, findOrphans } from '../../store/call-steps.ts'
import { renewLease } from '../../store/nodes.ts'
import { openCallNode, openShared, type CallNode, type Shared } from '../scenes/call-node.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

/** A call that belongs to `owner` and that no actor runs. */
async function ownedBy(shared: Shared, node: CallNode, owner: string | null) {
  const { accountId, workerId } = await createTenant(shared.sql, { slug: newId() })
  const { callId } = await node.createWebCall(accountId, { workerId })
  await shared.sql`update calls set owner = ${owner} where id = ${callId}`
  return callId
}

test('a call that is born on a node, and whose actor is just beginning, is not taken for a lost one', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const callId = await ownedBy(shared, node, node.nodeId)
  const epoch = async () =>
    (await shared.sql<{ epoch: number }[]>`select epoch from calls where id = ${callId}`)[0]?.epoch
  await node.switchboard.start()
  t.equal(await epoch(), 0)
  await node.switchboard.start()
  t.equal(await epoch(), 1, 'one that still has none at the next look is lost')
})

test('a call that was found as left behind and only waits by then is left alone', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const [dead, alive] = [newId<'node'>(), newId<'node'>()]
  await renewLease(shared.sql, alive, 60_000)
  const callId = await ownedBy(shared, node, dead)
  const look = { nodeId: alive, passedOver: [], limit: 10 }
  t.same([...(await findOrphans(shared.sql, look))], [{ id: callId, owner: dead, epoch: 0 }])

  await shared.sql`update calls set owner = null where id = ${callId}`
  t.equal((await claimOrphans(shared.sql, [callId], alive)).get(callId), undefined)
  await shared.sql`update calls set owner = ${dead} where id = ${callId}`
  t.match((await claimOrphans(shared.sql, [callId], alive)).get(callId), { epoch: 1, leftFor: Number })
})

test('a node that has been dead for a day is forgotten with the next look, one that died since is not', async (t) => {
  const shared = await openShared(t)
  const node = await openCallNode(shared)
  t.teardown(() => node.close())
  const [old, recent] = [newId<'node'>(), newId<'node'>()]
  await node.switchboard.start()
  for (const [id, hours] of [
    [old, 25],
    [recent, 23],
  ] as const)
    await shared.sql`insert into nodes (id, lease_until) values (${id}, clock_timestamp() - ${hours}::int * interval '1 hour')`
  await node.switchboard.start()
  const left = await shared.sql<{ id: string }[]>`select id from nodes where id = any(${[old, recent]}::text[])`
  t.same(
    left.map(({ id }) => id),
    [recent],
  )
})
