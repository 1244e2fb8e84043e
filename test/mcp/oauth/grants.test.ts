/** What people see and stop of their grants, what a grant is for, the keys behind it, and what is forgotten. docs/contract/mcp.md "Approval". */
import { createSecretKey } from 'node:crypto'
import t from 'tap'
import { createRetention } from '../../../actors/rounds/retention.ts'
import { systemClock } from '../../../app/clock.ts'
import { makeKey } from '../../../mcp/oauth/signing-keys.ts'
import { knownBefore, loadOauthKeys, rotatesAfter } from '../../../store/oauth-keys.ts'
import { addMember, removeMember } from '../../../store/memberships.ts'
import { createSecretBox } from '../../../store/secret-box.ts'
import { createWorker } from '../../../store/workers.ts'
import { createHandClock } from '../../fake/hand-clock.ts'
import { createQuietLog } from '../../fake/quiet-log.ts'
import { openTestDatabase } from '../../scenes/database.ts'
import { appKey, createVerifier, decide, openOauthOn, stageOf } from '../../scenes/oauth.ts'
import { hiddenOf } from '../../scenes/people.ts'
import { newId } from '../../scenes/tenant.ts'

const database = await openTestDatabase(t)
const opened = openOauthOn(database)

await t.test('a person sees what they have approved, and stops it at once', async (t) => {
  const { tokensOf, browser, findMcpAccess, client, clientId, audited, newBrowser, user, accountId, sql } =
    await stageOf(opened)
  t.match((await newBrowser().get('/grants')).location, '/sign-in')
  const { access, refresh } = await tokensOf()
  const page = await browser.get('/grants')
  t.match(page.text, 'Test client')
  t.match(page.text, 'client.example')
  const fields = hiddenOf(page.text, '/grants')

  await user('eve@example.com', [[accountId, 'owner']])
  const eve = newBrowser()
  await eve.signIn('eve@example.com')
  const hers = await eve.get('/grants')
  t.notMatch(hers.text, 'Test client', 'the grants of others are nobody’s business')
  const csrf = hiddenOf((await eve.get('/account')).text, '/sign-out')['csrf'] ?? ''
  await eve.post('/grants', { csrf, grant: fields['grant'] ?? '' })
  t.ok(await findMcpAccess(access), 'and nobody else stops them')
  t.equal((await browser.post('/grants', { ...fields, csrf: 'x' })).status, 403)

  t.equal((await browser.post('/grants', fields)).location, '/grants?revoked')
  t.equal(await findMcpAccess(access), null)
  t.match(await client.refresh(clientId, refresh), { status: 400, json: { error: 'invalid_grant' } })
  t.equal((await sql`select from oauth_payloads where grant_id = ${fields['grant'] ?? ''}`).count, 0)
  t.match(audited.at(-1), { action: 'oauth.revoke', actor: { kind: 'user' }, accountId })
  t.match((await browser.get('/grants?revoked')).text, 'There is none')
})

await t.test('who is removed from an account and comes back approves anew', async (t) => {
  const { tokensOf, findMcpAccess, browser, client, clientId, user, account, accountId, userId, sql, clock } =
    await stageOf(opened)
  const second = await account(`second-${accountId}`)
  const ofMember = { userId, now: clock.now(), role: 'owner' } as const
  await addMember(sql, { accountId: second, ...ofMember })
  await user(`bob-${accountId}@example.com`, [[accountId, 'owner']])
  const kept = await tokensOf({}, { target: second })
  const { access, refresh } = await tokensOf({}, { target: accountId })
  t.ok(await findMcpAccess(access))
  t.ok(await removeMember(sql, { accountId, userId }))
  t.equal(await findMcpAccess(access), null)
  t.equal(((await browser.get('/grants')).text.match(/<section>/g) ?? []).length, 1)
  await addMember(sql, { accountId, ...ofMember })
  t.equal(await findMcpAccess(access), null)
  t.match(await client.refresh(clientId, refresh), { status: 400, json: { error: 'invalid_grant' } })
  t.ok(await findMcpAccess(kept.access), 'what was granted for another account goes on')
})

await t.test('scopes of one worker are granted for the worker that is chosen, and go with it', async (t) => {
  const { tokensOf, findMcpAccess, sql, accountId, account, clock, browser, toConsent, client, clientId } =
    await stageOf(opened)
  const worker = async (of: typeof accountId, name: string) => {
    const { id } = await createWorker(sql, { accountId: of, name, language: 'en', newId, now: clock.now() })
    return id
  }
  const [mine, other] = [await worker(accountId, 'Anna <b>'), await worker(accountId, 'Otto')]
  const foreign = await worker(await account(`foreign-${accountId}`), 'Foreign')
  const { page } = await toConsent(browser, client.authorizeUrl(clientId, createVerifier(), { scope: 'admin user' }))
  t.match(page.text, 'Anna &lt;b&gt;')
  t.notMatch(page.text, 'Foreign')
  const all = { scope: 'account_admin admin user' }
  const { access, refresh, json } = await tokensOf(all, { target: `${accountId}/${other}` })
  t.match(json, { scope: 'account_admin admin user' })
  t.match(await findMcpAccess(access), { workerId: other, scopes: ['account_admin', 'admin', 'user'] })
  const whole = await tokensOf(all, { target: accountId })
  t.match(
    await findMcpAccess(whole.access),
    { workerId: null, scopes: ['account_admin'] },
    'without a worker, what needs none',
  )
  const small = await tokensOf(all, { target: `${accountId}/${mine}`, scopes: 'user' })
  t.match(await findMcpAccess(small.access), { workerId: mine, scopes: ['user'] })
  t.equal(small.json['scope'], 'user')
  const begin = () => toConsent(browser, client.authorizeUrl(clientId, createVerifier(), { scope: 'user' }))
  t.equal((await decide(browser, await begin(), { target: `${accountId}/${foreign}` })).back, null)
  t.equal((await decide(browser, await begin(), { target: accountId })).back, null, 'a scope of a worker without one')
  await sql`update workers set deleted_at = now() where id in (${other}, ${mine})`
  t.match(await findMcpAccess(access), { workerId: null, scopes: ['account_admin'] })
  t.equal(await findMcpAccess(small.access), null)
  const fresh = await client.refresh(clientId, refresh, { scope: 'account_admin' })
  t.match(await findMcpAccess(String(fresh.json['access_token'])), { scopes: ['account_admin'] })
})

await t.test('a client that names no scope asks for all of an account', async (t) => {
  const { tokensOf, findMcpAccess, browser, client, clientId } = await stageOf(opened)
  const { access } = await tokensOf({ scope: null })
  t.match(await findMcpAccess(access), { scopes: ['account_admin'] })
  const offline = await tokensOf({ scope: 'account_admin offline_access', prompt: 'consent' })
  t.match(await findMcpAccess(offline.access), { scopes: ['account_admin'] })
  t.type(offline.json['refresh_token'], 'string')
  const identity = await tokensOf({ scope: 'openid account_admin' })
  t.notOk('id_token' in identity.json, 'who the person is, is nobody’s business')
  for (const scope of ['openid', 'everything', 'openid everything'])
    t.match(
      (await browser.get(client.authorizeUrl(clientId, createVerifier(), { scope }))).location,
      /error=invalid_scope/,
      scope,
    )
})

await t.test('an access token is good for an hour', async (t) => {
  const { tokensOf, findMcpAccess, clock } = await stageOf(opened)
  const { access } = await tokensOf()
  clock.advance(3_599_000)
  t.ok(await findMcpAccess(access))
  clock.advance(1_001)
  t.equal(await findMcpAccess(access), null)
  for (const odd of ['', 'x', 'x'.repeat(43), `${access}x`, access.slice(1), "'; drop table users; --"])
    t.equal(await findMcpAccess(odd), null)
})

await t.test('what has expired is forgotten in the rounds of the service, and nothing else', async (t) => {
  const { tokensOf, codeOf, sql, clock, client, clientId } = await stageOf(opened)
  await sql`delete from oauth_grants`
  await sql`delete from oauth_payloads`
  const live = await tokensOf()
  await codeOf()
  const count = async (table: string) => (await sql`select from ${sql(table)}`).count
  const forget = async () => {
    const retention = createRetention({
      sql,
      clock: { ...systemClock, now: clock.now },
      log: createQuietLog(),
      keep: { deliveries: 1 },
    })
    await retention.idle()
    await retention.close()
  }
  clock.advance(700_000)
  await forget()
  t.equal(await count('oauth_grants'), 1, 'a grant that was never used is gone')
  t.equal((await client.refresh(clientId, live.refresh)).status, 200)
  clock.advance(31 * 24 * 3_600_000)
  await forget()
  t.equal(await count('oauth_grants'), 0)
  t.equal(await count('oauth_payloads'), 0)
})

await t.test(
  'keys are sealed, shared, known before they sign, and kept until nothing is left that they signed',
  async (t) => {
    const { sql } = database
    await sql`delete from oauth_keys`
    const clock = createHandClock()
    const box = createSecretBox(appKey)
    const unopened: string[] = []
    const load = (rotate = false) =>
      loadOauthKeys(
        {
          sql,
          box,
          now: clock.now(),
          newId: () => newId<'request'>(),
          make: makeKey,
          unopened: (id) => unopened.push(id),
        },
        { rotate },
      )
    const ofCookies = async (rotate = false) =>
      (await load(rotate)).filter(({ kind }) => kind === 'cookie').map(({ text }) => text)
    const both = await Promise.all([ofCookies(), ofCookies(), ofCookies()])
    const first = both[0][0] ?? ''
    t.same(both, [[first], [first], [first]], 'of processes that start at once all have the same')
    t.notMatch(JSON.stringify(await sql`select * from oauth_keys`), first)
    clock.advance(rotatesAfter)
    const [signs, next] = await ofCookies()
    t.equal(signs, first, 'the old one signs on')
    t.ok(next)
    clock.advance(knownBefore)
    t.same(await ofCookies(), [next, first], 'until everybody knows the new one')
    clock.advance(3 * 24 * 3_600_000)
    await load(true)
    clock.advance(knownBefore)
    const [latest, ...others] = await ofCookies()
    t.not(latest, next)
    t.same(others, [next])
    t.same(unopened, [])

    const newer = createSecretKey(Buffer.alloc(32, 8))
    const before = await ofCookies()
    const deps = {
      sql,
      now: clock.now(),
      newId: () => newId<'request'>(),
      make: makeKey,
      unopened: (id: string) => unopened.push(id),
    }
    await loadOauthKeys({ ...deps, box: createSecretBox(newer, [appKey]) })
    const after = await loadOauthKeys({ ...deps, box: createSecretBox(newer) })
    t.same(
      after.filter(({ kind }) => kind === 'cookie').map(({ text }) => text),
      before,
      'another APP_SECRET seals the same keys',
    )
    t.same(unopened, [])
  },
)
