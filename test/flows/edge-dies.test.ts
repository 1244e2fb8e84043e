/** A telephone edge is killed with -9 under the calls of other people's telephones: another edge asks each of them over, and hangs up who does not come. */
import { test } from 'tap'
import { createApiKey } from '../../store/api-keys.ts'
import { natsServerPaths, startNatsServer } from '../peers/nats-server.ts'
import { freePorts } from '../peers/peer-program.ts'
import { startBaresip, withoutBaresip } from '../peers/baresip.ts'
import { startSipp, withoutSipp } from '../peers/sipp.ts'
import { needsTool } from '../peers/tools.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { until } from '../scenes/in-time.ts'
import { startPhoneNode } from '../scenes/phone-node.ts'
import { addTrunk } from '../scenes/telephony.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const called = 8

test(
  'of an edge that is killed every telephone that talks comes over to its heir or is hung up, and one that rings stops ringing',
  { skip: withoutSipp() || withoutBaresip(), timeout: 300_000 },
  async (t) => {
    const program = needsTool(t, 'nats-server', natsServerPaths)
    if (!program) return
    const nats = await startNatsServer(program)
    t.teardown(() => nats.close())
    const { sql, dataDir } = await openTestDatabase(t)
    let count = 0
    /** A worker with a number; calls of it go to that port. */
    const line = async (port: number) => {
      const number = `+1202555${String(++count).padStart(4, '0')}`
      const tenant = await createTenant(sql, { slug: `line-${count}`, script: 'Count.', config: { ringTimeout: 300 } })
      const numbers = { inboundPhoneNumber: number, outboundPhoneNumber: number }
      await sql`update workers set ${sql(numbers)} where id = ${tenant.workerId}`
      const gateways = [{ host: '127.0.0.1', port }]
      await addTrunk(sql, tenant, { gateways, allowedAddresses: ['127.0.0.1'], qualify: false })
      return { ...tenant, number }
    }
    const [edgePort, heirPort] = [await freePorts(2), await freePorts(2)]
    const edge = await startPhoneNode(t, sql, [dataDir, nats.url, String(edgePort)])
    const [answers, rings] = [await startSipp(t, 'callee-is-hung-up'), await startSipp(t, 'callee-is-canceled')]
    const [inbound, answering, ringing] = [await line(1), await line(answers.port), await line(rings.port)]
    for (const { accountId, workerId } of [answering, ringing]) {
      const { key } = await createApiKey(sql, { accountId, name: 'test', newId, now: Date.now() })
      const { status } = await fetch(`${edge.url}/v1/accounts/${accountId}/phone-calls`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: JSON.stringify({ workerId, phoneNumber: '+12025550999' }),
      })
      t.ok(status < 300)
    }
    await answers.seen('ACK ')
    await rings.seen('INVITE ')
    // All that was placed is the first one's.
    const heir = await startPhoneNode(t, sql, [dataDir, nats.url, String(heirPort)])
    const callers = await startSipp(t, 'caller-is-hung-up', { to: edgePort, number: inbound.number, calls: called })
    const softphone = await startBaresip(t, { tone: 500, codec: 'pcmu' })
    softphone.dial(`sip:${inbound.number}@127.0.0.1:${edgePort}`)
    await softphone.event('CALL_ESTABLISHED')
    const all = called + 3
    await until(async () => (await sql`select from sip_dialogs`).count === all)
    await until(async () => (await sql`select from calls where progress = 'in_progress'`).count === all - 1)

    await edge.kill()
    const killedAt = performance.now()
    const after = (who: string) => () => t.comment(`${who}: told after ${Math.round(performance.now() - killedAt)} ms`)
    await Promise.all([
      callers.done.then(after('sipp, who called')),
      answers.done.then(after('sipp, who was called')),
      rings.done.then(after('sipp, who was rung')),
      until(async () => (await sql`select from calls where outcome is null`).count === 1).then(after('all other rows')),
    ])
    // baresip has come over, and talks on.
    const [{ id: kept }] = (await sql`select id from calls where outcome is null`) as unknown as [{ id: string }]
    const turns = async () => (await sql`select from transcript_turns where call_id = ${kept}`).count
    const before = await until(turns)
    await until(async () => (await turns()) > before)
    t.match(await sql`select node_id from sip_dialogs`, [{ nodeId: heir.id }])
    softphone.hangUp()
    await softphone.event('CALL_CLOSED')
    // What sipp answers goes to the dead process, so it is told again and again.
    await until(async () => (await sql`select from sip_dialogs where call_id = ${kept}`).count === 0)
    await until(async () => (await sql`select from calls where outcome is null`).count === 0)
    const ends = await sql<{ outcome: string; count: number }[]>`
      select outcome, count(*)::int as count from calls group by outcome order by outcome`
    t.match(ends, [
      { outcome: 'completed', count: 1 },
      { outcome: 'failed', count: all - 1 },
    ])
  },
)
