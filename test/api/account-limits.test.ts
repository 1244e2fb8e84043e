/** docs/contract/rest.md "Limits" and "Grants": an account sees what it may and what its users allowed, and an owner changes what is theirs. */
import { test } from 'tap'
import { addMember } from '../../store/memberships.ts'
import { changeAccountConfig } from '../../store/accounts.ts'
import { beginGrant, saveGrantPayload } from '../../store/oauth-grants.ts'
import { createUser } from '../../store/users.ts'
import { insertCall, newId, openSeededApi, start } from '../scenes/seeded-api.ts'

test('what an account may', async (t) => {
  const { ask, own, other, sql } = await openSeededApi(t)
  const path = `/v1/accounts/${own.id}`

  await t.test('is told with what of it is used', async (t) => {
    const untouched = { maxConcurrentCalls: 100, homeCountryOnly: false, requireConfirmationForOutboundCalls: true }
    const before = (await ask(`${path}/limits`)).json
    t.match(before, { ...untouched, minutesToday: 0 })
    t.notOk('dailyMinutes' in before)
    await changeAccountConfig(
      sql,
      own.id,
      { maxConcurrentCalls: 7, dailyMinutes: 120, allowedDestinations: ['+49'] },
      start,
    )
    const running = { direction: 'outbound', transport: 'sip_trunk', progress: 'in_progress' } as const
    await insertCall(sql, own.id, own.worker.id, {
      ...running,
      startedAt: start - 90_000,
      createdAt: start - 90_000,
      slotGrantedAt: start - 90_000,
    })
    t.match((await ask(`${path}/limits`)).json, {
      maxConcurrentCalls: 7,
      runningCalls: before.runningCalls + 1,
      dailyMinutes: 120,
      minutesToday: 1.5,
      allowedDestinations: ['+49'],
    })
  })

  await t.test('only the confirmation of calls is its own to change', async (t) => {
    const change = (json: object) => ask(`${path}/limits`, { method: 'PATCH', json })
    t.match(await change({ requireConfirmationForOutboundCalls: false, dailyMinutes: 9_999 }), {
      status: 400,
      json: { issues: [{ path: 'dailyMinutes' }] },
    })
    t.equal(
      (await change({ requireConfirmationForOutboundCalls: false })).json.requireConfirmationForOutboundCalls,
      false,
    )
    t.equal((await ask(`${path}/limits`)).json.requireConfirmationForOutboundCalls, false)
    t.equal(
      (await change({ requireConfirmationForOutboundCalls: true })).json.requireConfirmationForOutboundCalls,
      true,
    )
  })

  await t.test('what all its users allowed applications is listed, and taken back for good', async (t) => {
    const grantOf = async (accountId: typeof own.id, email: string) => {
      const userId = await createUser(sql, { email, name: null, passwordHash: 'none', newId, now: start })
      await addMember(sql, { accountId, userId, role: 'operator', now: start })
      const client = { clientId: 'client', clientName: 'A client', redirectHost: 'client.example' }
      const id = `grant of ${email}`
      await beginGrant(sql, { id, userId, accountId, workerId: null, ...client, scopes: ['account_admin'], now: start })
      await saveGrantPayload(sql, id, {})
      return id
    }
    const first = await grantOf(own.id, 'ada@example.com')
    const second = await grantOf(own.id, 'grace@example.com')
    const theirs = await grantOf(other.id, 'eve@example.com')
    const listed = async () => (await ask(`${path}/grants`)).json.map((grant: { userEmail: string }) => grant.userEmail)
    t.same((await listed()).toSorted(), ['ada@example.com', 'grace@example.com'])
    const revoke = async (id: string) =>
      (await ask(`${path}/grants/${encodeURIComponent(id)}`, { method: 'DELETE' })).status
    for (const [id, status] of [
      [theirs, 404],
      ['nothing', 404],
      ['\u0000', 404],
      [first, 204],
      [first, 404],
    ] as const)
      t.equal(await revoke(id), status, id)
    t.same(await listed(), ['grace@example.com'])
    await sql`update oauth_grants set expires_at = ${start} where id = ${second}`
    t.same(await listed(), [], 'one that has expired is none')
  })
})
