/** docs/security.md "Console": the API as somebody asks it who is signed in on the pages, from a page of ours and with what their role may. */
import { test, type Test } from 'tap'
import { createApi } from '../../api/api.ts'
import { createPeople } from '../../mcp/people/people.ts'
import type { Role } from '../../model/user.ts'
import { createAudit } from '../../store/audit.ts'
import { addMember } from '../../store/memberships.ts'
import { createPasswords } from '../../store/passwords.ts'
import { createUser } from '../../store/users.ts'
import { cheap, createBrowser, password } from '../scenes/people.ts'
import { newId, openSeededApi, start } from '../scenes/seeded-api.ts'

const origin = 'http://calls.example:8080'

async function openPages(t: Test) {
  const seeded = await openSeededApi(t)
  const { sql, deps, own } = seeded
  const { clock, log } = deps
  const audit = createAudit({ sql, clock, newId, log })
  t.teardown(() => audit.close())
  const passwords = createPasswords(cheap)
  const people = createPeople({ sql, clock, newId, log, audit, passwords, publicUrl: null })
  const fetch = createApi({ ...deps, audit, sessions: people, beside: people.pages })
  const userId = await createUser(sql, {
    email: 'ada@example.com',
    name: null,
    passwordHash: await passwords.hash(password),
    newId,
    now: start,
  })
  const become = async (role: Role) => {
    await sql`delete from memberships where user_id = ${userId}`
    await addMember(sql, { accountId: own.id, userId, role, now: start })
  }
  await become('owner')
  const browser = createBrowser((request) => fetch(request, { remoteAddress: '192.0.2.7' }), origin)
  await browser.signIn('ada@example.com')
  const page = { origin, 'sec-fetch-site': 'same-origin' }
  const session = JSON.parse((await browser.send('/console/session', { headers: page })).text) as { csrf: string }
  const send = async (method: string, path: string, headers: Record<string, string> = {}, json?: unknown) => {
    const body = json === undefined ? {} : { body: JSON.stringify(json) }
    const type = json === undefined ? {} : { 'content-type': 'application/json' }
    const answer = await browser.send(path, { method, ...body, headers: { ...page, ...type, ...headers } })
    return { status: answer.status, json: answer.text === '' ? null : JSON.parse(answer.text) }
  }
  const change = (method: string, path: string, json?: unknown) =>
    send(method, path, { 'x-csrf-token': session.csrf }, json)
  return { ...seeded, userId, become, browser, page, send, change, account: `/v1/accounts/${own.id}` }
}

test('who is signed in', async (t) => {
  const { other, own, sql, userId, become, browser, page, send, change, account } = await openPages(t)

  await t.test('reads their account and no other', async (t) => {
    t.equal((await send('GET', '/v1/accounts/current')).json.id, own.id)
    t.equal((await send('GET', `${account}/workers`)).json.length, 1)
    t.equal((await send('GET', `/v1/accounts/${other.id}/workers`)).status, 404)
    t.equal((await send('GET', '/v1/accounts/current', { 'x-account-id': other.id })).status, 404)
    t.equal((await send('GET', `/console/events?accountId=${other.id}`)).status, 404)
  })

  await t.test('is heard from pages of this service only', async (t) => {
    for (const headers of [
      { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' },
      { origin: 'http://other.calls.example:8080', 'sec-fetch-site': 'same-site' },
    ]) {
      t.equal((await send('GET', `${account}/workers`, headers)).json.type, 'ORIGIN_NOT_ALLOWED')
      t.equal((await send('GET', '/console/session', headers)).json.type, 'ORIGIN_NOT_ALLOWED')
    }
  })

  await t.test('changes nothing without the token of their page', async (t) => {
    const rename = { name: 'Other' }
    const path = `${account}/workers/${own.worker.id}`
    t.equal((await send('PATCH', path, {}, rename)).json.type, 'ORIGIN_NOT_ALLOWED')
    t.equal((await send('PATCH', path, { 'x-csrf-token': 'x' }, rename)).json.type, 'ORIGIN_NOT_ALLOWED')
    t.equal((await change('PATCH', path, rename)).status, 200)
  })

  await t.test('is not kept from watching calls by questions that have no stream', async (t) => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => send('HEAD', `/console/events?accountId=${own.id}`)),
    )
    t.same([...new Set(answers.map(({ status }) => status))], [200])
  })

  await t.test('is named by the audit log', async (t) => {
    const { data } = (await send('GET', `${account}/audit-log?action=changeWorker`)).json
    t.same(data[0].actor, { kind: 'user', userId })
  })

  await t.test('may what their role may, at this moment', async (t) => {
    const invite = { email: 'new@example.com', role: 'viewer' }
    const may = async () => ({
      read: (await send('GET', `${account}/phone-calls`)).status,
      configure: (await change('PATCH', `${account}/workers/${own.worker.id}`, { name: 'Ada' })).status,
      seeKeys: (await send('GET', `${account}/api-keys`)).status,
      makeKeys: (await change('POST', `${account}/api-keys`, { name: 'mine' })).status,
      invite: (await change('POST', `${account}/invitations`, invite)).status,
      dropKey: (await change('DELETE', `${account}/api-keys/${newId()}`)).status,
    })
    t.same(await may(), { read: 200, configure: 200, seeKeys: 200, makeKeys: 200, invite: 200, dropKey: 404 })
    await become('operator')
    t.same(await may(), { read: 200, configure: 200, seeKeys: 200, makeKeys: 403, invite: 403, dropKey: 403 })
    await become('viewer')
    t.same(await may(), { read: 200, configure: 403, seeKeys: 403, makeKeys: 403, invite: 403, dropKey: 403 })
    await sql`delete from memberships where user_id = ${userId}`
    t.equal((await send('GET', `${account}/phone-calls`)).status, 404)
  })

  await t.test('is nobody once they have signed out', async (t) => {
    await become('owner')
    browser.cookies.clear()
    t.equal((await browser.send(`${account}/workers`, { headers: page })).status, 401)
    t.equal((await browser.get('/console/calls')).location, '/sign-in?returnTo=%2Fconsole%2Fcalls')
  })
})
