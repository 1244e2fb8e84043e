/** docs/users.md "A link instead of a password". */
import t, { test } from 'tap'
import { loggedPathOf } from '../../../api/access-log.ts'
import { createSignInLink } from '../../../store/sign-in-links.ts'
import { openTestDatabase } from '../../scenes/database.ts'
import { openPeopleOn } from '../../scenes/people.ts'

const database = await openTestDatabase(t)

test('a link signs in once, for a quarter of an hour, from no page of others, and is stored as a hash', async (t) => {
  const { sql, clock, account, user, browser, audited } = await openPeopleOn(database)
  const userId = await user('ada@example.com', [[await account('first'), 'owner']])
  const make = () => createSignInLink(sql, userId, clock.now())

  const token = await make()
  const [row] = await sql`select encode(token_hash, 'escape') as kept from sign_in_links`
  t.notMatch(String(row?.['kept']), token)
  const [ada, other] = [browser(), browser()]
  const foreign = await other.send(`/enter/${token}`, { headers: { 'sec-fetch-site': 'cross-site' } })
  t.equal(foreign.status, 403)
  t.equal((await other.send(`/enter/${token}`, { method: 'HEAD' })).headers.getSetCookie().length, 0)
  t.equal((await ada.get(`/enter/${token}`)).location, '/console')
  t.equal((await ada.get('/account')).status, 200)
  t.match(audited.at(-1), { action: 'user.sign_in', actor: { kind: 'user', userId } })
  t.equal((await other.get(`/enter/${token}`)).status, 404, 'once')
  t.equal((await other.get('/enter/nothing')).status, 404)

  const former = await make()
  await make()
  t.equal((await other.get(`/enter/${former}`)).status, 404, 'a later one takes its place')
  const late = await make()
  clock.advance(15 * 60_000)
  t.equal((await other.get(`/enter/${late}`)).status, 404, 'too late')
  t.equal(loggedPathOf(`http://calls.example/enter/${late}?x`), '/enter/…')
})
