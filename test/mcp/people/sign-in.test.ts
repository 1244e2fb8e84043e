/** Signing in and out by pages, on a real database. docs/users.md, docs/security.md "Pages and sign-in". */
import t, { test, type Test } from 'tap'
import { createRetention } from '../../../actors/rounds/retention.ts'
import { createPasswords } from '../../../store/passwords.ts'
import { findUserByEmail } from '../../../store/users.ts'
import { removeUser } from '../../../store/memberships.ts'
import { createSession, findSession } from '../../../store/user-sessions.ts'
import { blockedQueries } from '../../scenes/blocked-queries.ts'
import { openTestDatabase } from '../../scenes/database.ts'
import { until } from '../../scenes/in-time.ts'
import { eachDriver, serve } from '../../scenes/listener.ts'
import { cheap, createBrowser, hiddenOf, openPeopleOn, password } from '../../scenes/people.ts'

const hour = 3_600_000
const database = await openTestDatabase(t)
const openPeople = (_: Test, options = {}) => openPeopleOn(database, options)

test('a person signs in with e-mail and password, sees who they are, and signs out', async (t) => {
  const { account, user, browser, audited } = await openPeople(t)
  const [first, second] = [await account('first'), await account('second')]
  const userId = await user('ada@example.com', [
    [first, 'owner'],
    [second, 'viewer'],
  ])
  const ada = browser()
  t.equal((await ada.get('/account')).location, '/sign-in?returnTo=%2Faccount')
  const signedIn = await ada.signIn(' Ada@Example.com ', password, '/account?x=1')
  t.same([signedIn.status, signedIn.location], [303, '/account?x=1'])
  const cookie = signedIn.headers.getSetCookie().find((one) => one.startsWith('parley_session='))
  t.match(cookie, /^parley_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
  const page = await ada.get('/account')
  t.equal(page.status, 200)
  t.match(page.text, 'ada@example.com')
  t.match(page.text, /<td>first &lt;account&gt;<\/td>\s*<td>owner<\/td>/)
  t.match(page.text, /<td>second &lt;account&gt;<\/td>\s*<td>viewer<\/td>/)
  const former = new Map(ada.cookies)
  const out = await ada.submit('/account', {}, '/sign-out')
  t.same([out.status, out.location], [303, '/sign-in'])
  t.notOk(ada.cookies.has('parley_session'))
  for (const [name, value] of former) ada.cookies.set(name, value)
  t.equal((await ada.get('/account')).status, 303, 'the cookie of before is good no more')
  const actor = { kind: 'user', userId }
  t.match(
    audited.map((entry) => ({ ...entry })),
    ['user.sign_in', 'user.sign_out'].flatMap((action) =>
      [first, second].map((accountId) => ({ accountId, actor, action, result: 'success' })),
    ),
    'each of their accounts has it in its audit log',
  )
})

test('a wrong password and an unknown address get the same answer, which takes as long', async (t) => {
  const { account, user, browser, audited, sql, passwords } = await openPeople(t)
  const accountId = await account('first')
  const userId = await user('ada@example.com', [[accountId, 'owner']])
  const answers = []
  for (const email of ['ada@example.com', 'eve@example.com'])
    answers.push(await browser().signIn(email, 'something else'))
  for (const answer of answers) {
    t.equal(answer.status, 401)
    t.match(answer.text, 'E-mail address or password is wrong.')
    t.same(
      answer.headers.getSetCookie().filter((cookie) => cookie.includes('session')),
      [],
    )
  }
  const plain = answers.map(({ text }) => text.replace(/value="[^"]*"/g, ''))
  t.equal(plain[0], plain[1])
  t.match(audited, [{ accountId, actor: { kind: 'user', userId }, action: 'user.sign_in', result: 'error' }])
  t.equal(audited.length, 1)

  const dear = createPasswords({ logN: 13, r: 8, p: 1 })
  const stored = await dear.hash(password)
  const took = async (hash: string | null): Promise<number> => {
    const began = performance.now()
    t.notOk((await dear.verify('something else', hash)).matches)
    return performance.now() - began
  }
  await took(stored)
  t.ok((await took(null)) > (await took(stored)) / 4, 'as much is computed for nobody')
  t.notOk((await dear.verify(password, 'nothing that we wrote')).matches)
  t.notOk((await passwords.verify('', (await findUserByEmail(sql, 'ada@example.com'))?.passwordHash ?? null)).matches)
})

test('a session ends after 12 hours without use, after 7 days in any case, and is another one after each sign-in', async (t) => {
  const { user, browser, clock, sql, log } = await openPeople(t)
  await user('ada@example.com')
  const ada = browser()
  const isIn = async (): Promise<boolean> => (await ada.get('/account')).status === 200
  await ada.signIn('ada@example.com')
  const touched = async (): Promise<void> => {
    // What nobody waits for.
    while ((await sql`select from user_sessions where last_used_at < ${clock.now()}`).length > 0)
      await new Promise(setImmediate)
  }
  for (let used = 0; used < 15; used++) {
    clock.advance(11 * hour)
    t.ok(await isIn(), `after ${used + 1} times 11 hours`)
    await touched()
  }
  clock.advance(4 * hour)
  t.notOk(await isIn(), 'seven days are over')

  await ada.signIn('ada@example.com')
  clock.advance(12 * hour)
  t.notOk(await isIn(), 'unused')

  await ada.signIn('ada@example.com')
  const token = ada.cookies.get('parley_session')
  await ada.signIn('ada@example.com')
  t.not(ada.cookies.get('parley_session'), token)
  t.equal(await findSession(sql, token ?? '', clock.now()), null, 'what the browser had before is good no more')
  const rounds = createRetention({ sql, clock, log, keep: { deliveries: hour } })
  rounds.wake()
  await until(async () => (await sql`select from user_sessions`).length === 1)
  await rounds.close()
  t.equal((await ada.get('/account')).status, 200, 'only those that are over are forgotten')
  for (let count = 0; count < 60; count++) {
    clock.advance(1)
    await browser().signIn('ada@example.com')
  }
  t.equal((await sql`select from user_sessions`).length, 50, 'a user has fifty at most')
  const rows = await sql<{ tokenHash: Buffer }[]>`select token_hash from user_sessions`
  t.ok(
    rows.every(({ tokenHash }) => tokenHash.length === 32),
    'only hashes are stored',
  )
})

test('a change of the password ends every session, also one that begins at the same moment', async (t) => {
  const { user, browser, sql, clock, passwords, audited } = await openPeople(t)
  const userId = await user('ada@example.com')
  const [here, there] = [browser(), browser('192.0.2.8')]
  await here.signIn('ada@example.com')
  await there.signIn('ada@example.com')
  const change = (current: string, next: string) => here.submit('/account', { current, new: next }, '/account/password')
  t.match((await change('something else', 'another password')).text, 'This is not your password.')
  for (const [wrong, why] of [
    ['short', 'must have 10 characters or more'],
    ['x'.repeat(257), 'must have 256 characters or fewer'],
    ['ADA@example.com', 'must not be your e-mail address'],
  ] as const) {
    const answer = await change(password, wrong)
    t.equal(answer.status, 400)
    t.match(answer.text, why)
    t.match(answer.text, 'id="new-error"', 'at the field')
  }
  const before = here.cookies.get('parley_session')
  const changed = await change(password, 'another Pässword')
  t.same([changed.status, changed.location], [303, '/account?done=password'])
  t.match((await here.get('/account?done=password')).text, 'Your password is changed')
  t.not(here.cookies.get('parley_session'), before)
  t.equal((await there.get('/account')).status, 303, 'the other browser is signed out')
  t.equal((await there.signIn('ada@example.com', password)).status, 401)
  t.equal((await there.signIn('ada@example.com', 'another Pa\u0308ssword')).status, 303, 'in any spelling of Unicode')
  t.match(
    audited.map(({ action, result }) => `${action} ${result}`),
    [/./, /./, 'user.change_password error', 'user.change_password success'],
  )

  const { passwordHash } = (await findUserByEmail(sql, 'ada@example.com')) ?? { passwordHash: '' }
  const passwordHashOfNow = await passwords.hash('yet another one')
  // A sign-in with the former password, when the new one is written and its transaction has ended no session yet.
  const session = await sql.begin(async (tx) => {
    await tx`update users set password_hash = ${passwordHashOfNow} where id = ${userId}`
    const beginning = createSession(sql, { userId, passwordHash, former: null, now: clock.now() })
    await Promise.race([beginning, blockedQueries(sql, 1)])
    await tx`delete from user_sessions where user_id = ${userId}`
    return { beginning }
  })
  t.equal(await session.beginning, null)
  t.same(await sql`select from user_sessions`, [], 'whoever showed the former password is out')
})

test('who is removed is signed out at once, and nothing personal is left', async (t) => {
  const { user, browser, sql } = await openPeople(t)
  const userId = await user('ada@example.com')
  const ada = browser()
  await ada.signIn('ada@example.com')
  await removeUser(sql, userId)
  t.equal((await ada.get('/account')).status, 303)
  t.same(await sql`select from user_sessions`, [])
  t.same(await sql`select from users`, [])
})

test('guesses are few: from an address, and of a user from all addresses; nobody is locked out by a stranger', async (t) => {
  const { user, browser, clock } = await openPeople(t)
  await user('ada@example.com')
  await user('bob@example.com')
  const home = browser('192.0.2.50')
  t.equal((await home.signIn('ada@example.com')).status, 303, 'an address that has proved the password')

  const stranger = browser('198.51.100.1')
  const statuses = []
  for (let count = 0; count < 12; count++)
    statuses.push((await stranger.signIn('ada@example.com', `guess ${count}`)).status)
  t.same(statuses, [...Array.from({ length: 10 }, () => 401), 429, 429])
  const refused = await stranger.signIn('ada@example.com')
  t.equal(refused.status, 429, 'the right one is not looked at either')
  t.match(refused.headers.get('retry-after'), /^\d+$/)
  t.match(refused.text, /Too many tries/)
  t.equal((await stranger.signIn('bob@example.com', 'guess')).status, 429, 'of nobody else')

  for (let address = 2; address < 80; address++)
    await browser(`198.51.100.${address}`).signIn('ada@example.com', 'guess')
  t.equal((await browser('198.51.100.79').signIn('ada@example.com', 'guess')).status, 429)
  t.equal((await home.signIn('ada@example.com')).status, 303, 'who is known there is let in')
  t.equal(
    (await browser('203.0.113.9').signIn('ada@example.com')).status,
    303,
    'and who comes from anywhere else has one try',
  )
  t.equal((await browser('203.0.113.9').signIn('bob@example.com')).status, 303)
  clock.advance(hour)
  t.equal((await stranger.signIn('ada@example.com')).status, 303, 'after a while everybody is heard again')
})

test('a flood of sign-ins takes the memory of one, and who finds the queue full is told when to come again', async (t) => {
  const passwords = createPasswords({ logN: 10, r: 1, p: 1 })
  const results = await Promise.allSettled(Array.from({ length: 100 }, () => passwords.verify('x', null)))
  const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
  t.equal(results.length - refused.length, 17, 'one is computed and sixteen wait')
  t.match(refused[0], { type: 'SERVICE_UNAVAILABLE', retryAfterSeconds: 5 })
  t.ok((await passwords.verify('y', await passwords.hash('y'))).matches, 'and afterwards all is well')
})

test('the parameters of a hash can be raised: who signs in gets a new one', async (t) => {
  const { user, browser, sql } = await openPeople(t)
  const userId = await user('ada@example.com')
  const weak = await createPasswords({ ...cheap, p: 2 }).hash(password)
  await sql`update users set password_hash = ${weak} where id = ${userId}`
  const ada = browser()
  t.equal((await ada.signIn('ada@example.com')).status, 303)
  const [row] = await sql<{ passwordHash: string }[]>`select password_hash from users`
  t.match(row?.passwordHash, /^\$scrypt\$ln=4,r=1,p=1\$/)
  t.equal((await ada.get('/account')).status, 200)
  t.match(
    await createPasswords().hash(password),
    /^\$scrypt\$ln=15,r=8,p=3\$[\w+/]{22}\$[\w+/]{43}$/,
    'as strong as OWASP asks',
  )
})

test('a form that is not ours does nothing', async (t) => {
  const { user, browser, sql } = await openPeople(t)
  await user('ada@example.com')
  const ada = browser()
  const hidden = hiddenOf((await ada.get('/sign-in')).text, '/sign-in')
  const form = { ...hidden, email: 'ada@example.com', password }
  const evil = [
    { origin: 'https://evil.example' },
    { origin: 'null', 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'cross-site' },
  ]
  for (const headers of evil as Record<string, string>[])
    t.equal((await ada.post('/sign-in', form, headers)).status, 403)
  const other = browser()
  t.equal((await other.post('/sign-in', form)).status, 403, 'the token of another browser')
  t.equal((await ada.post('/sign-in', { ...form, csrf: 'x' })).status, 403)
  t.same(await sql`select from user_sessions`, [])
  t.equal((await ada.post('/sign-in', form)).status, 303)
  for (const [path, fields] of [
    ['/sign-out', { csrf: hidden['csrf'] ?? '' }],
    ['/account/password', { current: password, new: 'another password' }],
  ] as const)
    t.equal((await ada.post(path, fields)).status, 403, `${path} needs the token of the session`)
  t.equal((await ada.get('/account')).status, 200)
  t.equal((await ada.get('/sign-out')).status, 405, 'a link signs nobody out')
})

test('what no browser sends is refused, and never becomes a 500', async (t) => {
  const { user, browser } = await openPeople(t)
  await user('ada@example.com')
  const ada = browser()
  const { csrf = '' } = hiddenOf((await ada.get('/sign-in')).text, '/sign-in')
  const good = `csrf=${csrf}&email=ada%40example.com&password=${encodeURIComponent(password)}`
  const wrong = {
    [`${good}&password=x`]: 400,
    [`${good}&email=eve%40example.com`]: 400,
    [`csrf=${csrf}&email=ada%00%40example.com&password=x`]: 400,
    [`csrf=${csrf}&email=%ff&password=x`]: 400,
    [`csrf=${csrf}&email=nobody&password=x`]: 400,
    [`csrf=${csrf}&email=${'%D0%B0'}da%40example.com&password=${encodeURIComponent(password)}`]: 400,
    [`csrf=${csrf}`]: 400,
    [`${good}&x=${'x'.repeat(20_000)}`]: 413,
    '': 403,
  }
  for (const [body, status] of Object.entries(wrong))
    t.equal((await ada.post('/sign-in', body)).status, status, body.slice(-60))
  t.equal((await ada.post('/sign-in', '{}', { 'content-type': 'application/json' })).status, 415)
  for (const returnTo of ['//evil.example', 'https://evil.example', '/\\evil.example', '/\t/evil.example'])
    t.equal((await browser().signIn('ada@example.com', password, returnTo)).location, '/account', returnTo)
  t.equal(
    (await ada.post('/sign-in', `${good}&returnTo=%2F%2Fevil.example`)).location,
    '/account',
    'also in the form itself',
  )
})

test('behind TLS the session is taken from the cookie of this host alone', async (t) => {
  const { user, browser } = await openPeople(t, { publicUrl: 'https://calls.example' })
  await user('ada@example.com')
  const ada = browser()
  const { headers } = await ada.signIn('ada@example.com')
  t.match(headers.getSetCookie().join(), /__Host-parley_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure/)
  const token = ada.cookies.get('__Host-parley_session') ?? ''
  t.equal((await ada.get('/account')).status, 200)
  const neighbour = browser()
  neighbour.cookies.set('parley_session', token)
  t.equal((await neighbour.get('/account')).status, 303, 'what a neighbouring host can set counts for nothing')
})

await eachDriver({
  async 'carries forms, redirects and several cookies of one answer'(t, driver) {
    const { fetch: pages, user } = await openPeople(t)
    await user('ada@example.com')
    const { url } = await serve(t, driver, { fetch: pages })
    const ada = createBrowser((request) => fetch(request), url)
    const signedIn = await ada.signIn('ada@example.com', password, '/account')
    t.same([signedIn.status, signedIn.location], [303, '/account'])
    t.equal(signedIn.headers.getSetCookie().length, 2, 'the session comes, the form’s own cookie goes')
    t.same([...ada.cookies.keys()], ['parley_session'])
    const page = await ada.get('/account')
    t.equal(page.status, 200)
    t.match(page.headers.get('content-security-policy'), "default-src 'none'")
    const huge = await ada.post('/sign-in', `csrf=x&email=${'x'.repeat(40_000)}`)
    t.equal(huge.status, 413)
    t.equal((await ada.submit('/account', {}, '/sign-out')).status, 303)
    t.same([...ada.cookies.keys()], [])
  },
})
