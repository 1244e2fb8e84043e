/** The human step of a client that can show pages, and calls as tasks. docs/contract/mcp.md "Approval page" and "Tasks". */
import { test, type Test } from 'tap'
import { approvalsPath } from '../../mcp/confirmations/ask-approval.ts'
import { createApprovalPage } from '../../mcp/confirmations/approval-page.ts'
import { createPeople } from '../../mcp/people/people.ts'
import type { CallId } from '../../model/ids.ts'
import type { Role } from '../../model/user.ts'
import { createDocument } from '../../store/documents.ts'
import { addMember } from '../../store/memberships.ts'
import { createPasswords } from '../../store/passwords.ts'
import { createUser } from '../../store/users.ts'
import { until } from '../scenes/in-time.ts'
import { openMcp, publicUrl, type Sending } from '../scenes/mcp.ts'
import { cheap, createBrowser, password } from '../scenes/people.ts'
import { insertTurns, newId, start } from '../scenes/seeded-api.ts'
import { addTrunk } from '../scenes/telephony.ts'

const number = '+4930123456'
const pages = { elicitation: { url: {} } }
const tasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } }

async function open(t: Test) {
  const mcp = await openMcp(t)
  const { sql, own, deps, noted, grant, done } = mcp
  const { clock, log } = deps
  await sql`update workers set outbound_phone_number = '+4930100' where id = ${own.worker.id}`
  await addTrunk(sql, { accountId: own.id, workerId: own.worker.id })
  const script = { accountId: own.id, title: 'Greeting', fileName: 'a.txt', content: 'Say hello.', newId, now: start }
  const tagKeys = ['outbound_call_script']
  await createDocument(sql, { ...script, status: 'completed', tagKeys, workerIds: [own.worker.id] })
  const passwords = createPasswords(cheap)
  const audit = { note: async (entry: (typeof noted)[number]) => void noted.push(entry), noteSoon: () => undefined }
  const people = createPeople({ sql, clock, newId, log, audit, passwords, publicUrl })
  const approvals = { path: `${approvalsPath}*`, fetch: createApprovalPage({ sql, clock, audit, ...people }) }
  const served = [...people.pages, approvals]
  const fetch = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url)
    const page = served.find(({ path }) =>
      path.endsWith('/*') ? pathname.startsWith(path.slice(0, -1)) : pathname === path,
    )
    return page ? page.fetch(request, { remoteAddress: '192.0.2.7' }) : new Response('nothing', { status: 404 })
  }
  const user = async (email: string, role: Role | null = 'operator', accountId = own.id) => {
    const userId = await createUser(sql, {
      email,
      name: null,
      passwordHash: await passwords.hash(password),
      newId,
      now: clock.now(),
    })
    if (role) await addMember(sql, { accountId, userId, role, now: clock.now() })
    const browser = createBrowser(fetch, publicUrl)
    await browser.signIn(email)
    return { userId, browser }
  }
  /** Prepared by a client with pages: what it gets when it confirms, and how it comes back. */
  const prepare = async (userId: Awaited<ReturnType<typeof user>>['userId']) => {
    const sending: Sending = { token: grant({ userId }), capabilities: pages }
    const good = { worker_id: own.worker.id, phone_number: number }
    const { confirmation_token, summary } = await done('prepare_phone_call', good, sending)
    const args = { confirmation_token }
    const asked = await mcp.call('confirm_phone_call', args, sending)
    const back = (action: string, over: Sending = {}) =>
      mcp.call('confirm_phone_call', args, {
        ...sending,
        retry: { inputResponses: { approval: { action } }, requestState: asked.requestState },
        ...over,
      })
    const url = new URL(asked.inputRequests.approval.params.url)
    return { sending, args, summary: summary as string, asked, back, url, path: url.pathname }
  }
  const countCalls = async () =>
    (await sql`select from calls where account_id = ${own.id} and direction = 'outbound'`).length
  return { ...mcp, user, prepare, countCalls, nobody: () => createBrowser(fetch, publicUrl) }
}

void test('a client that can show pages', async (t) => {
  const scene = await open(t)
  const { user, prepare, countCalls, nobody, sql, other, noted, hands, call } = scene
  const ada = await user('ada@example.com')
  /** Half a second at a time, whenever somebody waits for the clock: it is no matter what else does. */
  async function whileTurning<Answer>(answering: Promise<Answer>): Promise<Answer> {
    let isBack = false
    const back = answering.finally(() => (isBack = true))
    await until(() => {
      if (!isBack && hands.waiting() > 0) hands.turn(500)
      return isBack
    })
    return back
  }

  await t.test('sends its user to a page that says what will happen; approved there, the call is placed', async (t) => {
    const { asked, url, path, back, summary } = await prepare(ada.userId)
    t.equal(asked.resultType, 'input_required')
    t.match(asked.inputRequests.approval, { method: 'elicitation/create', params: { mode: 'url' } })
    t.notOk('elicitationId' in asked.inputRequests.approval.params)
    t.equal(url.origin, publicUrl)
    t.equal(url.search, '', 'the address carries no secret')
    const page = await ada.browser.get(path)
    t.equal(page.status, 200)
    t.match(page.text, 'A client')
    t.match(page.text, summary.split('\n')[0]!.replaceAll('"', '&quot;'))
    t.match(page.headers.get('content-security-policy'), "default-src 'none'")
    t.equal((await ada.browser.submit(path, { answer: 'approve' })).location, path)
    t.match((await ada.browser.get(path)).text, 'You approved it')
    t.equal(await countCalls(), 0, 'the client has not come back yet')
    const placed = await back('accept')
    t.match(placed.structuredContent, { status: 'placed', call: { to_number: number } })
    t.equal(await countCalls(), 1)
    t.match((await ada.browser.get(path)).text, 'confirmed and placed')
    t.match(
      noted.filter(({ action }) => action === 'confirmation.approve'),
      [{ actor: { kind: 'user', userId: ada.userId } }],
    )
    t.match((await back('accept')).structuredContent, { code: 'CONFLICT' })
  })

  await t.test('which came back early waits for its user, and is asked again', async (t) => {
    const { back, asked, path, url } = await prepare(ada.userId)
    const before = await countCalls()
    const timers = hands.waiting()
    const answering = back('accept')
    await until(() => hands.waiting() > timers)
    await ada.browser.submit(path, { answer: 'approve' })
    t.match((await whileTurning(answering)).structuredContent, { status: 'placed' })
    t.equal(await countCalls(), before + 1)
    const patient = await prepare(ada.userId)
    const again = await whileTurning(patient.back('accept'))
    t.match(again, { resultType: 'input_required', inputRequests: { approval: {} } })
    t.not(patient.url.href, url.href)
    t.ok(asked.requestState)
    t.equal(await countCalls(), before + 1)
  })

  await t.test('cannot confirm what was denied, on the page or by not opening it', async (t) => {
    const before = await countCalls()
    const denied = await prepare(ada.userId)
    await ada.browser.submit(denied.path, { answer: 'approve' })
    await ada.browser.submit(denied.path, { answer: 'deny' })
    await ada.browser.post(denied.path, { answer: 'approve' })
    t.match((await ada.browser.get(denied.path)).text, 'You denied it')
    t.match((await denied.back('accept')).structuredContent, { code: 'CONFLICT', message: /denied/ })
    const byToken = { token: denied.sending.token ?? null }
    t.match((await call('confirm_phone_call', denied.args, byToken)).structuredContent, { message: /denied/ })
    const declined = await prepare(ada.userId)
    t.match((await declined.back('decline')).structuredContent, { message: /denied/ })
    t.match((await ada.browser.get(declined.path)).text, 'You denied it')
    const canceled = await prepare(ada.userId)
    t.match((await canceled.back('cancel')).structuredContent, { message: /neither approved nor denied/ })
    t.match((await ada.browser.get(canceled.path)).text, 'Approve a call')
    t.equal(await countCalls(), before)
  })

  await t.test('is not believed when it says so itself, or brings back what is not its own', async (t) => {
    const before = await countCalls()
    const { back, sending } = await prepare(ada.userId)
    const foreign = await prepare((await user('eve@example.com')).userId)
    const retry = { inputResponses: { approval: { action: 'accept' } } }
    for (const requestState of ['x', foreign.asked.requestState]) {
      const answer = await back('accept', { retry: { ...retry, requestState } })
      t.match(answer.structuredContent, { code: 'VALIDATION_FAILED', issues: [{ path: /requestState|request_state/ }] })
    }
    t.match(await back('accept', { retry }), { resultType: 'input_required' })
    t.match(await back('accept', { ...sending, retry: {} }), { resultType: 'input_required' })
    t.equal(await countCalls(), before)
  })

  await t.test(
    'has a page for its user only, signed in, with the right to place calls, and by its own form',
    async (t) => {
      const { path } = await prepare(ada.userId)
      const stranger = await user('stranger@example.com')
      const away = await user('away@example.com', 'owner', other.id)
      for (const { browser } of [stranger, away]) {
        t.equal((await browser.get(path)).status, 404)
        t.equal((await browser.post(path, { answer: 'approve' })).status, 404)
      }
      for (const wrong of ['/approvals/', `/approvals/${newId()}`, '/approvals/x', `${path}/x`])
        t.equal((await ada.browser.get(wrong)).status, 404, wrong)
      t.match((await nobody().get(path)).location, /^\/sign-in\?returnTo=%2Fapprovals%2F/)
      t.equal((await ada.browser.post(path, { answer: 'approve' })).status, 403, 'without the token of the form')
      t.equal((await ada.browser.submit(path, { answer: 'maybe' })).status, 400)
      t.equal((await ada.browser.get(path)).text.includes('You approved it'), false)
      await sql`update memberships set role = 'viewer' where user_id = ${ada.userId}`
      t.equal((await ada.browser.get(path)).status, 404, 'a viewer')
      await sql`update memberships set role = 'operator' where user_id = ${ada.userId}`
      t.equal((await ada.browser.get(path)).status, 200)
      hands.turn(600_000)
      t.match((await ada.browser.get(path)).text, 'not confirmed in time')
      await ada.browser.post(path, { answer: 'approve' })
      t.match((await ada.browser.get(path)).text, 'not confirmed in time')
    },
  )
})

void test('a client that follows tasks', async (t) => {
  const scene = await open(t)
  const { grant, send, done, call, own, sql } = scene
  const userId = newId<'user'>()
  const sending: Sending = { token: grant({ userId }), capabilities: tasks }
  const good = {
    worker_id: own.worker.id,
    phone_number: number,
    scheduled_at: new Date(start + 3_600_000).toISOString(),
  }
  const place = async () => {
    const { confirmation_token } = await done('prepare_phone_call', good, sending)
    return call('confirm_phone_call', { confirmation_token }, sending)
  }
  const callIdOf = ({ statusMessage }: { statusMessage: string }) => /Call (\S+):/.exec(statusMessage)![1] as CallId
  const get = async (taskId: string, over: Sending = {}) =>
    (await send('tasks/get', { taskId }, { ...sending, ...over })).json

  await t.test('is offered the extension, in the current revision', async (t) => {
    const { json } = await send('server/discover', {}, sending)
    t.same(json.result.capabilities.extensions, { 'io.modelcontextprotocol/tasks': {} })
    t.notOk('tasks' in json.result.capabilities)
  })

  await t.test('is given a confirmed call as a task that works until the call is over', async (t) => {
    const task = await place()
    t.match(task, { resultType: 'task', status: 'working', createdAt: new Date(start).toISOString(), ttlMs: null })
    t.ok(Number.isInteger(task.pollIntervalMs))
    t.notOk('requestState' in task || 'task' in task || 'structuredContent' in task)
    const callId = callIdOf(task)
    const working = (await get(task.taskId)).result
    t.match(working, { resultType: 'complete', taskId: task.taskId, status: 'working' })
    t.notOk('result' in working || 'error' in working)
    await sql`update calls set progress = 'in_progress', started_at = ${start + 1_000} where id = ${callId}`
    t.match((await get(task.taskId)).result, {
      status: 'working',
      lastUpdatedAt: new Date(start + 1_000).toISOString(),
    })
    const turn = { from: 0, to: 900, confidence: null, source: 'embedded' }
    await insertTurns(sql, own.id, callId, [{ ...turn, role: 'agent', text: 'Hello.' }] as never)
    await sql`
      update calls set progress = 'completed', outcome = 'completed', finished = true, ended_at = ${start + 9_000}
      where id = ${callId}`
    const over = (await get(task.taskId)).result
    t.match(over, {
      status: 'completed',
      result: {
        content: [{ type: 'text' }],
        structuredContent: {
          call: { call_id: callId, outcome: 'completed', duration_seconds: 8 },
          transcript: [{ text: 'Hello.' }],
        },
      },
    })
    t.notOk(over.result.isError)
  })

  await t.test('cancels what waits, and asks in vain for what is not its own', async (t) => {
    const task = await place()
    const unknown = { error: { code: -32602 } }
    t.match(await get(task.taskId, { token: grant() }), unknown, 'of another user')
    t.match(await get(task.taskId, { token: grant({ userId, clientId: 'other' }) }), unknown)
    t.match(await get(task.taskId, { token: grant({ userId, accountId: scene.other.id }) }), unknown)
    t.match(await get(callIdOf(task)), unknown, 'the id of the call itself')
    t.match(await get('x'), unknown)
    const ask = async (method: string) =>
      (await send(method, { taskId: task.taskId, inputResponses: {} }, sending)).json
    t.match(await ask('tasks/update'), { result: { resultType: 'complete' } })
    t.match((await get(task.taskId)).result, { status: 'working' })
    t.match(await ask('tasks/cancel'), { result: { resultType: 'complete' } })
    const canceled = (await get(task.taskId)).result
    t.equal(canceled.status, 'cancelled')
    t.notOk('result' in canceled)
    t.match(await ask('tasks/cancel'), { result: { resultType: 'complete' } }, 'again')
    t.match(await ask('tasks/result'), { error: { code: -32601 } })
    t.match(await ask('tasks/list'), { error: { code: -32601 } })
  })

  await t.test('and no other is, or may ask', async (t) => {
    const plain: Sending = { token: sending.token ?? null }
    const { confirmation_token } = await done('prepare_phone_call', good, plain)
    const placed = await call('confirm_phone_call', { confirmation_token }, plain)
    t.match(placed, { resultType: 'complete', structuredContent: { status: 'scheduled' } })
    const task = await place()
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const { json } = await send(method, { taskId: task.taskId, inputResponses: {} }, plain)
      t.match(json, { error: { code: -32021, data: { requiredCapabilities: tasks } } }, method)
      t.match((await send(method, { taskId: task.taskId }, { ...plain, era: 'legacy' })).json, {
        error: { code: -32601 },
      })
    }
  })
})
