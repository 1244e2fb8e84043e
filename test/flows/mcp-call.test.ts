/**
 * A scripted client of the MCP endpoint with the whole service behind it: a person allows it by OAuth, it prepares a call, confirms it, watches a telephone of
 * sipp ring and talk, and reads back what was said. docs/contract/mcp.md "Calls and confirmations" and "Tasks".
 */
import { test } from 'tap'
import { addMember } from '../../store/memberships.ts'
import { createPasswords } from '../../store/passwords.ts'
import { createUser } from '../../store/users.ts'
import { createHearingEngine, engineRateHz } from '../fake/hearing-engine.ts'
import { startSipp, withoutSipp } from '../peers/sipp.ts'
import { until } from '../scenes/in-time.ts'
import { modernOf } from '../scenes/mcp.ts'
import { createClient, createVerifier, decide, goToConsent } from '../scenes/oauth.ts'
import { createBrowser, password } from '../scenes/people.ts'
import { openPhoneStage, type PhoneStage } from '../scenes/phone-stage.ts'
import { newId } from '../scenes/tenant.ts'

const skip = withoutSipp()
const callee = '+4930111222'
const tasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } }

void test(
  'a scripted client places a confirmed call, watches it and reads its transcript back',
  { skip, timeout: 90_000 },
  async (t) => {
    const engine = createHearingEngine({ tone: null })
    const stage = await openPhoneStage(t, engine)
    const token = await allowed(stage)
    const sipp = await startSipp(t, 'callee-hangs-up', { pause: 3_000 })
    const line = await stage.addLine({
      trunk: { gateways: [{ host: '127.0.0.1', port: sipp.port, transport: 'udp' }] },
    })
    const send = clientOf(stage.service.url, token)
    const call = async (tool: string, args: object, capabilities = {}) => {
      const result = await send('tools/call', { name: `account_admin__${tool}`, arguments: args }, capabilities)
      if (result.isError) throw new Error(`${tool}: ${JSON.stringify(result.structuredContent)}`)
      return result.resultType === 'task' ? result : result.structuredContent
    }

    const asked = await call('initiate_phone_call', {
      worker_id: line.workerId,
      phone_number: callee,
      context: { order: 7 },
    })
    t.equal(asked.status, 'confirmation_required')
    t.match(asked.summary, `calls ${callee} from ${line.number} as soon as it is confirmed`)
    t.match(await call('list_recent_calls', {}), { calls: [] }, 'nothing is placed before it is confirmed')
    t.equal((await call('get_outbound_call_policy', {})).pending_confirmations.length, 1)

    const task = await call('confirm_phone_call', { confirmation_token: asked.confirmation_token }, tasks)
    t.match(task, { resultType: 'task', status: 'working' })
    const watch = () => send('tasks/get', { taskId: task.taskId }, tasks)
    t.equal((await watch()).status, 'working')
    const [{ call_id }] = (await call('list_recent_calls', { worker_id: line.workerId })).calls
    await until(async () => (await call('get_call_details', { call_id })).progress === 'in_progress')
    const { emit } = await engine.of(line.number)
    emit({ type: 'agent_text', itemId: 'greeting', text: 'Hello, this is about your order.' })
    emit({ type: 'audio', itemId: 'greeting', payload: new Uint8Array(engineRateHz) })
    emit({ type: 'item_done', itemId: 'greeting' })
    t.equal((await watch()).status, 'working', 'while they talk')
    await sipp.done
    const over = await until(async () => {
      const now = await watch()
      return now.status === 'completed' && now
    })
    t.match(over.result.structuredContent.call, { call_id, outcome: 'completed', to_number: callee })
    t.match(over.result.structuredContent.transcript, [{ speaker: 'agent', text: 'Hello, this is about your order.' }])

    const details = await call('get_call_details', { call_id })
    t.match(details.transcript, [{ speaker: 'agent', text: 'Hello, this is about your order.' }])
    t.same(details.context, { order: 7 })
    const statuses = details.events.flatMap(({ status }: { status?: string }) => status ?? [])
    t.same(statuses, ['queued', 'ringing', 'in_progress', 'completed'])
    t.ok(details.duration_seconds >= 2)
    t.match(await call('get_phone_call_analytics', {}), { total: 1, answered: 1, by_outcome: { completed: 1 } })
    await t.rejects(call('confirm_phone_call', { confirmation_token: asked.confirmation_token }), /was used already/)
  },
)

/** By a person who signs in and approves, in a browser without scripts. */
async function allowed({ service, accountId }: PhoneStage): Promise<string> {
  const { sql, url } = service
  const [email, now] = ['ada@example.com', Date.now()]
  const passwordHash = await createPasswords().hash(password)
  const userId = await createUser(sql, { email, name: 'Ada', passwordHash, newId, now })
  await addMember(sql, { accountId, userId, role: 'operator', now })
  const ask = (request: Request) => fetch(request)
  const client = createClient(ask, url)
  const clientId = await client.registered({ client_name: 'Scripted client' })
  const verifier = createVerifier()
  const browser = createBrowser(ask, url)
  const { back } = await decide(browser, await goToConsent(browser, client.authorizeUrl(clientId, verifier), email))
  const { json } = await client.exchange(clientId, back?.searchParams.get('code') ?? '', verifier)
  return String(json['access_token'])
}

/** Throws for an error of the protocol. */
function clientOf(url: string, token: string) {
  // eslint-disable-next-line typescript/no-explicit-any -- an answer is whatever the test says it is
  return async (method: string, params: Record<string, unknown>, capabilities: object): Promise<any> => {
    const { headers, json } = modernOf(method, params, capabilities)
    const answer = await fetch(new URL('/mcp', url), {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
      },
      body: JSON.stringify(json),
    })
    const { result, error } = (await answer.json()) as { result?: unknown; error?: unknown }
    if (!result) throw new Error(`${method} answered ${answer.status} ${JSON.stringify(error)}`)
    return result
  }
}
