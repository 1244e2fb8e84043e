/** A call that was placed just before the database went away: its client must not place it again. docs/contract/mcp.md "Calls and confirmations". */
import { test } from 'tap'
import { createOutboundCalls } from '../../actors/call/birth/outbound-calls.ts'
import { placeCallTools } from '../../mcp/tools/place-call-tools.ts'
import type { ToolContext } from '../../mcp/tools/tool.ts'
import type { UserId } from '../../model/ids.ts'
import type { ConfirmationKind } from '../../model/outbound-calls.ts'
import { issueConfirmation } from '../../store/confirmations.ts'
import { connect } from '../../store/sql.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { box } from '../scenes/call-node.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createCallingTenant } from '../scenes/telephony.ts'
import { newId } from '../scenes/tenant.ts'

void test('a call that is placed and cannot be read is told to be placed, with its id', async (t) => {
  const { sql, server } = await openTestDatabase(t)
  const clock = createHandClock()
  const engines = new Map([['embedded', createScriptedEngine()]] as const)
  const waking = { wakeDeliveries: () => undefined, wakeDispatcher: () => undefined }
  const outboundCalls = createOutboundCalls({ sql, clock, newId, box, engines, ...waking })
  const { accountId, workerId } = await createCallingTenant(sql)
  const holder = { accountId, userId: newId<'user'>() as UserId, clientId: 'client-1' }
  const away = connect({ server, applicationName: 'away', maxConnections: 1 })
  await away.end({ timeout: 1 })
  const tools = placeCallTools({ sql: away, clock, newId, box, outboundCalls, endCall: null as never })
  const context = { access: holder, protocol: {} } as unknown as ToolContext

  const confirm = async (kind: ConfirmationKind, tool: string, argument: string) => {
    const wanted = Array.from({ length: kind === 'batch' ? 2 : 1 }, () => ({ workerId, phoneNumber: '+4930200' }))
    const { calls } = await outboundCalls.plan(accountId, wanted)
    const given = { holder, clientName: 'Claude', kind, calls, summary: '', newId, now: clock.now() }
    const { token } = await issueConfirmation(sql, given)
    return tools.find(({ name }) => name === `account_admin__${tool}`)!.run({ [argument]: token }, context)
  }
  for (const outcome of [
    await confirm('single', 'confirm_phone_call', 'confirmation_token'),
    await confirm('batch', 'confirm_phone_call_batch', 'batch_confirmation_token'),
  ]) {
    const placed = await sql<{ id: string }[]>`
      select id from calls where account_id = ${accountId} and id = any(${[...(outcome.callIds ?? [])]}::text[])`
    t.ok(placed.length > 0, 'the audit log names what was placed')
    t.equal(placed.length, outcome.callIds?.length)
    t.match(outcome, { failed: { code: 'SERVICE_UNAVAILABLE', message: /^Placed, do not try again: / } })
    for (const { id } of placed) t.match('failed' in outcome && outcome.failed.message, id)
  }
})
