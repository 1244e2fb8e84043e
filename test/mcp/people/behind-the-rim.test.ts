/** The pages of people behind the rim of the API, with its audit log: what it adds to them, and what it leaves as it is. docs/users.md. */
import { test } from 'tap'
import { createPeople } from '../../../mcp/people/people.ts'
import { createAudit } from '../../../store/audit.ts'
import { addMember } from '../../../store/memberships.ts'
import { createPasswords } from '../../../store/passwords.ts'
import { createUser } from '../../../store/users.ts'
import { cheap, createBrowser, password } from '../../scenes/people.ts'
import { createAsk, newId, openSeededApi, start } from '../../scenes/seeded-api.ts'

test('pages keep their policy and cookies behind the rim, are charged to their address, and stand in the audit log', async (t) => {
  const {
    deps,
    own,
    sql,
    lines,
    ask: askApi,
  } = await openSeededApi(t, { rateLimits: { perAccount: 0, perAddress: 50 } })
  const passwords = createPasswords(cheap)
  const audit = createAudit(deps)
  t.teardown(() => audit.close())
  const people = createPeople({ ...deps, audit, passwords })
  const ask = createAsk({ ...deps, beside: people.pages }, own.key)
  const passwordHash = await passwords.hash(password)
  const userId = await createUser(sql, { email: 'ada@example.com', name: null, passwordHash, newId, now: start })
  await addMember(sql, { accountId: own.id, userId, role: 'owner', now: start })

  const origin = 'http://calls.example:8080'
  const fetch = async (request: Request): Promise<Response> => {
    const { pathname, search } = new URL(request.url)
    const body = request.method === 'POST' ? { body: await request.text() } : {}
    const headers = Object.fromEntries(request.headers)
    const answer = await ask(pathname + search, { method: request.method, key: null, headers, ...body })
    return new Response(answer.text, { status: answer.status, headers: answer.headers })
  }
  const ada = createBrowser(fetch, origin)
  const page = await ada.get('/sign-in')
  t.match(page.headers.get('content-security-policy'), /style-src 'sha256-/)
  t.match(page.headers.get('content-type'), 'text/html')
  t.match(page.headers.get('x-frame-options'), 'DENY')
  t.match(page.headers.get('ratelimit-policy'), '"default";q=50')
  t.equal((await ada.signIn('ada@example.com', 'something else')).status, 401)
  t.equal((await ada.signIn('ada@example.com')).status, 303)
  t.match(await ada.get('/account'), { status: 200, text: /own account/ })
  t.match(await ada.get(`/invitations/${'x'.repeat(43)}`), { status: 404, text: /<h1>Not here<\/h1>/ })
  const wrong = await ada.get('/sign-out')
  t.match([wrong.status, wrong.headers.get('allow')], [405, 'POST'])
  t.equal((await ada.post('/sign-in', 'x'.repeat(20_000))).status, 413)

  await audit.flush()
  const { json } = await askApi(`/v1/accounts/${own.id}/audit-log`)
  const told = json.data.map(({ action, result, actor }: Record<string, unknown>) => ({ action, result, actor }))
  const actor = { kind: 'user', userId }
  t.match(told.toReversed(), [
    { action: 'user.sign_in', result: 'error', actor },
    { action: 'user.sign_in', result: 'success', actor },
  ])
  const logged = JSON.stringify(lines.map(({ message, fields: { personal: _, ...rest } }) => ({ message, rest })))
  t.notMatch(logged, /ada@example|correct horse|xxxxx/, 'nothing personal or secret in the log')

  const statuses = []
  for (let count = 0; count < 60; count++) statuses.push((await ada.get('/account')).status)
  t.equal(statuses.at(-1), 429)
})
