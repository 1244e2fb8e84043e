/** Invitations, roles and removal, by pages and by the rows behind them. docs/users.md. */
import t, { test } from 'tap'
import type { AccountId } from '../../../model/ids.ts'
import {
  acceptAsNewUser,
  acceptAsUser,
  findInvitation,
  forgetInvitations,
  invite,
  listInvitations,
  withdrawInvitation,
} from '../../../store/invitations.ts'
import { addMember, changeRole, listMembers, removeMember, removeUser } from '../../../store/memberships.ts'
import { openTestDatabase } from '../../scenes/database.ts'
import { openPeopleOn, password } from '../../scenes/people.ts'
import { newId } from '../../scenes/tenant.ts'

const day = 86_400_000
const database = await openTestDatabase(t)

async function open() {
  const people = await openPeopleOn(database)
  const { sql, clock } = people
  const accountId = await people.account('first')
  const inviting = (email: string, role = 'operator' as const, to: AccountId = accountId) =>
    invite(sql, { accountId: to, email, role, newId, now: clock.now() })
  const rolesOf = async (of = accountId) => (await listMembers(sql, of)).map(({ email, role }) => `${email} ${role}`)
  return { ...people, accountId, inviting, rolesOf }
}

const chosen = { name: ' Ada Lovelace ', password }

test('an invitation makes a person a user who sets name and password, and works once', async (t) => {
  const { browser, inviting, rolesOf, sql, audited, accountId } = await open()
  const { token } = await inviting('ada@example.com')
  const path = `/invitations/${token}`
  const ada = browser()
  for (let look = 0; look < 3; look++) {
    const page = await ada.get(path)
    t.equal(page.status, 200, 'to look at it uses nothing up')
    t.match(page.text, 'first &lt;account&gt;')
    t.match(page.text, 'as operator')
  }
  t.match(await ada.submit(path, { ...chosen, password: 'short' }), { status: 400, text: /id="password-error"/ })
  t.match(await ada.submit(path, { ...chosen, name: ' ' }), { status: 400, text: /id="name-error"/ })
  t.same(await rolesOf(), [])
  const joined = await ada.submit(path, chosen)
  t.same([joined.status, joined.location], [303, '/account'])
  t.match((await ada.get('/account')).text, /Ada Lovelace<\/strong> \(ada@example.com\)/)
  t.same(await rolesOf(), ['ada@example.com operator'])
  t.match(audited, [{ accountId, action: 'user.accept_invitation', result: 'success' }])
  for (const again of [await browser().get(path), await browser().post(path, chosen)]) t.equal(again.status, 404)
  t.same(await sql`select from invitations`, [], 'nothing of it is kept')
  t.equal((await browser().signIn('ada@example.com')).status, 303)
})

test('of two who use an invitation at once, one does', async (t) => {
  const { inviting, sql, clock, passwords, rolesOf, browser } = await open()
  const { token } = await inviting('ada@example.com')
  const passwordHash = await passwords.hash(password)
  const both = await Promise.all(
    ['Ada', 'Eve', 'Mallory'].map((name) =>
      acceptAsNewUser(sql, { token, name, passwordHash, newId, now: clock.now() }),
    ),
  )
  t.equal(both.filter((userId) => userId !== null).length, 1)
  t.equal((await rolesOf()).length, 1)

  const { token: second } = await inviting('bob@example.com')
  const browsers = Array.from({ length: 5 }, () => browser())
  const statuses = await Promise.all(
    browsers.map(async (one) => (await one.submit(`/invitations/${second}`, chosen)).status),
  )
  t.same(
    statuses.toSorted((a, b) => a - b),
    [303, 404, 404, 404, 404],
  )
  t.equal((await rolesOf()).length, 2)
})

test('it is good for seven days; a new one to the same address takes its place; it can be withdrawn', async (t) => {
  const { browser, inviting, clock, sql, accountId } = await open()
  const { token: first } = await inviting('ada@example.com')
  const { token: second } = await inviting('ada@example.com')
  const statusOf = async (token: string) => (await browser().get(`/invitations/${token}`)).status
  t.same([await statusOf(first), await statusOf(second)], [404, 200])
  clock.advance(7 * day - 1)
  t.equal(await statusOf(second), 200)
  clock.advance(1)
  t.equal(await statusOf(second), 404)
  const late = { token: second, name: 'Ada', passwordHash: 'none', newId, now: clock.now() }
  t.equal(await acceptAsNewUser(sql, late), null, 'nor for whoever opened its page in time')
  t.same([await forgetInvitations(sql, clock.now() - 1, 10), await forgetInvitations(sql, clock.now(), 10)], [0, 1])
  const { token: third } = await inviting('ada@example.com')
  t.equal((await listInvitations(sql, accountId, clock.now())).length, 1)
  t.ok(await withdrawInvitation(sql, accountId, { email: 'ada@example.com' }))
  t.notOk(await withdrawInvitation(sql, accountId, { email: 'ada@example.com' }))
  t.equal(await statusOf(third), 404)
  for (const token of ['', 'x', 'x'.repeat(43), `${third}/`, '%00', '../sign-in'])
    t.equal(await findInvitation(sql, token, clock.now()), null)
  t.equal(await statusOf('%00'), 404)
  const rows = await sql<{ tokenHash: Buffer }[]>`select token_hash from invitations`
  t.ok(rows.every(({ tokenHash }) => tokenHash.length === 32))
})

test('who is a user already joins signed in; the link of somebody else gives nothing, and sets no password', async (t) => {
  const { browser, inviting, user, account, rolesOf, sql, clock } = await open()
  const second = await account('second')
  await user('ada@example.com', [[second, 'viewer']])
  const eveId = await user('eve@example.com', [[second, 'viewer']])
  const { token } = await inviting('ada@example.com')
  const path = `/invitations/${token}`
  const eve = browser()
  t.equal((await eve.get(path)).location, `/sign-in?returnTo=${encodeURIComponent(path)}`)
  t.equal((await eve.post(path, { ...chosen, password: 'a password of eve' })).status, 303, 'she is sent to sign in')
  await eve.signIn('eve@example.com')
  t.match(await eve.get(path), { status: 403, text: /You are signed in as eve@example.com/ })
  const { csrf = '' } = /name="csrf" value="(?<csrf>[^"]+)"/.exec((await eve.get('/account')).text)?.groups ?? {}
  t.equal((await eve.post(path, { csrf })).status, 403)
  t.same(await rolesOf(), [])

  const email = 'eve@example.com'
  t.notOk(await acceptAsUser(sql, { token, userId: eveId, email, now: clock.now() }), 'the row says for whom it is')

  const ada = browser()
  t.equal((await ada.signIn('ada@example.com', password, path)).location, path)
  t.equal((await ada.post(path, {})).status, 403, 'a form without the token of her session')
  t.same(await rolesOf(), [])
  t.equal((await ada.submit(path, {})).location, '/account')
  t.same(await rolesOf(), ['ada@example.com operator'])
  t.equal((await browser().signIn('ada@example.com')).status, 303, 'her password is what it was')
})

test('nobody is invited to an account of theirs, and joining never changes a role', async (t) => {
  const { inviting, user, accountId, sql, clock, browser, rolesOf } = await open()
  const { token } = await inviting('ada@example.com')
  const userId = await user('ada@example.com', [[accountId, 'owner']])
  await t.rejects(inviting('ada@example.com'), { name: 'Problem', type: 'CONFLICT' })
  const ada = browser()
  await ada.signIn('ada@example.com')
  t.equal((await ada.submit(`/invitations/${token}`, {})).status, 303)
  t.same(await rolesOf(), ['ada@example.com owner'])
  t.notOk(await addMember(sql, { accountId, userId, role: 'viewer', now: clock.now() }))
})

test('an account keeps its last owner, also when two are taken away at once', async (t) => {
  const { user, accountId, account, sql, rolesOf } = await open()
  const ada = await user('ada@example.com', [[accountId, 'owner']])
  const bob = await user('bob@example.com', [[accountId, 'operator']])
  const last = { type: 'CONFLICT', message: /at least one owner/ }
  await t.rejects(changeRole(sql, { accountId, userId: ada, role: 'viewer' }), last)
  await t.rejects(removeMember(sql, { accountId, userId: ada }), last)
  await t.rejects(removeUser(sql, ada), last)
  t.ok(await changeRole(sql, { accountId, userId: ada, role: 'owner' }))
  t.ok(await changeRole(sql, { accountId, userId: bob, role: 'owner' }))
  for (let race = 0; race < 5; race++) {
    const results = await Promise.allSettled([
      changeRole(sql, { accountId, userId: ada, role: 'viewer' }),
      removeMember(sql, { accountId, userId: bob }),
    ])
    t.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
    t.equal((await rolesOf()).filter((one) => one.endsWith('owner')).length, 1)
    if ((await rolesOf()).length === 1) break
    await changeRole(sql, { accountId, userId: ada, role: 'owner' })
  }
  const other = await account('other')
  t.notOk(await changeRole(sql, { accountId: other, userId: ada, role: 'owner' }), 'of another account it is nobody')
  t.notOk(await removeMember(sql, { accountId: other, userId: ada }))
})

test('nothing is kept of who is removed from all accounts at once', async (t) => {
  const { user, accountId, account, sql } = await open()
  const second = await account('second')
  for (let race = 0; race < 10; race++) {
    const userId = await user(`ada-${race}@example.com`, [
      [accountId, 'viewer'],
      [second, 'viewer'],
    ])
    const removed = [accountId, second].map((of) => removeMember(sql, { accountId: of, userId }))
    t.same(await Promise.all(removed), [true, true])
  }
  t.same(await sql`select email from users`, [])
})

test('who is removed from an account does not come back by a link of before', async (t) => {
  const { user, accountId, account, sql, inviting, clock } = await open()
  const second = await account('second')
  const { token } = await inviting('ada@example.com')
  const { token: other } = await inviting('bob@example.com')
  const userId = await user('ada@example.com', [
    [accountId, 'viewer'],
    [second, 'viewer'],
  ])
  t.ok(await findInvitation(sql, token, clock.now()))
  t.ok(await removeMember(sql, { accountId, userId }))
  t.equal(await findInvitation(sql, token, clock.now()), null)
  t.ok(await findInvitation(sql, other, clock.now()), 'those of others stay')
})

test('who leaves the last account is removed with all that is personal', async (t) => {
  const { user, accountId, account, sql, inviting, browser } = await open()
  const second = await account('second')
  await user('own@example.com', [
    [accountId, 'owner'],
    [second, 'owner'],
  ])
  const userId = await user('ada@example.com', [
    [accountId, 'viewer'],
    [second, 'viewer'],
  ])
  const ada = browser()
  await ada.signIn('ada@example.com')
  t.ok(await removeMember(sql, { accountId, userId }))
  t.equal((await ada.get('/account')).status, 200)
  await inviting('ada@example.com')
  t.ok(await removeMember(sql, { accountId: second, userId }))
  t.equal((await ada.get('/account')).status, 303)
  t.same(await sql`select from users where email = 'ada@example.com'`, [])
  t.notOk(await removeUser(sql, userId))
  const owner = (await listMembers(sql, accountId))[0]
  t.ok(owner && (await removeUser(sql, owner.userId, true)), 'the operator may leave an account without an owner')
})
