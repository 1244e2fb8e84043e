/** docs/contract/rest.md "Users": people of an account over REST. */
import { test } from 'tap'
import type { AccountId } from '../../model/ids.ts'
import type { Role } from '../../model/user.ts'
import { findInvitation } from '../../store/invitations.ts'
import { addMember } from '../../store/memberships.ts'
import { createUser } from '../../store/users.ts'
import { newId, openSeededApi, start } from '../scenes/seeded-api.ts'

test('users of an account are listed, given another role and removed, and the last owner stays', async (t) => {
  const { ask, own, other, sql } = await openSeededApi(t)
  const add = async (email: string, role: Role, accountId: AccountId = own.id) => {
    const userId = await createUser(sql, { email, name: null, passwordHash: 'none', newId, now: start })
    await addMember(sql, { accountId, userId, role, now: start })
    return userId
  }
  const users = `/v1/accounts/${own.id}/users`
  t.same((await ask(users)).json, [])
  const [ada, bob] = [await add('ada@example.com', 'owner'), await add('bob@example.com', 'viewer')]
  const eve = await add('eve@example.com', 'owner', other.id)
  const createdAt = new Date(start).toISOString()
  t.same((await ask(users)).json, [
    { id: ada, email: 'ada@example.com', role: 'owner', createdAt },
    { id: bob, email: 'bob@example.com', role: 'viewer', createdAt },
  ])
  const change = (id: string, json: unknown) => ask(`${users}/${id}`, { method: 'PATCH', json })
  const remove = (id: string) => ask(`${users}/${id}`, { method: 'DELETE' })
  t.match(await change(bob, { role: 'operator' }), { status: 200, json: { id: bob, role: 'operator' } })
  for (const json of [{}, { role: 'king' }, { role: 'owner', email: 'x@example.com' }, { role: null }])
    t.match(await change(bob, json), { status: 400, json: { type: 'VALIDATION_FAILED' } })
  for (const refused of [await change(ada, { role: 'viewer' }), await remove(ada)])
    t.match(refused, { status: 409, json: { type: 'CONFLICT' } })
  for (const id of [eve, newId(), 'x']) {
    t.equal((await change(id, { role: 'viewer' })).status, 404, 'of another account it is nobody')
    t.equal((await remove(id)).status, 404)
  }
  t.equal((await ask(users, { key: other.key })).status, 404)
  t.equal((await remove(bob)).status, 204)
  t.equal((await remove(bob)).status, 404)
  t.same(await sql`select from users where email = 'bob@example.com'`, [])
})

test('an invitation tells its link once, to whoever makes it', async (t) => {
  const { ask, own, other, sql, hands } = await openSeededApi(t)
  const invitations = `/v1/accounts/${own.id}/invitations`
  const invite = (json: unknown) => ask(invitations, { method: 'POST', json })
  const { status, json } = await invite({ email: 'Ada@Example.com', role: 'viewer' })
  t.equal(status, 200)
  t.match(json, { email: 'ada@example.com', role: 'viewer', expiresAt: new Date(start + 7 * 86_400_000).toISOString() })
  const token = /^http:\/\/calls\.example:8080\/invitations\/([\w-]{43})$/.exec(json.url)?.[1] ?? ''
  t.match(await findInvitation(sql, token, start), { accountId: own.id, accountName: 'own account', hasUser: false })
  t.notMatch(JSON.stringify((await ask(invitations)).json), /url|token/)
  const again = await invite({ email: 'ada@example.com', role: 'operator' })
  t.equal(again.json.id, json.id)
  t.equal(await findInvitation(sql, token, start), null, 'the former link is good no more')
  t.match((await ask(invitations)).json, [{ id: json.id, role: 'operator' }])
  const wrong = ['ada', '', 'аda@example.com', 'ada@example.com\n', 7, null, `${'a'.repeat(300)}@example.com`]
  for (const email of wrong) t.equal((await invite({ email, role: 'viewer' })).status, 400, String(email))
  t.equal((await invite({ email: 'bob@example.com' })).status, 400)
  const withdraw = (id: string, key = own.key, account: string = own.id) =>
    ask(`/v1/accounts/${account}/invitations/${id}`, { method: 'DELETE', key })
  t.equal((await withdraw(json.id, other.key, other.id)).status, 404)
  t.equal((await withdraw(json.id)).status, 204)
  t.equal((await withdraw(json.id)).status, 404)
  await invite({ email: 'bob@example.com', role: 'viewer' })
  hands.turn(7 * 86_400_000)
  t.same((await ask(invitations)).json, [], 'those that are over are none')
})
