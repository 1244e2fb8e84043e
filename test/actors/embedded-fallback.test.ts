/** A call whose voice provider cannot be had goes on with the embedded engine where its account allows that, and nowhere else. */
import { test, type Test } from 'tap'
import { replay } from '../../actors/call/machine/replay.ts'
import { EngineRefusal, type VoiceEngine } from '../../model/voice-engine.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { changeAccountConfig } from '../../store/accounts.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { listen, openCallNode, openShared, status } from '../scenes/call-node.ts'
import { createScriptedEngine, type ScriptedEngine } from '../fake/scripted-engine.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { createTenant, newId } from '../scenes/tenant.ts'
import { until } from '../scenes/in-time.ts'

const down: VoiceEngine = {
  ...createScriptedEngine(),
  open: () => Promise.reject(new EngineRefusal('it answered 401', false)),
}

async function callWith(t: Test, provider: VoiceEngine, embeddedFallback: boolean, config: WorkerConfig = {}) {
  const shared = await openShared(t)
  const node = await openCallNode(shared, undefined, { provider })
  t.teardown(() => node.close())
  const { accountId, workerId } = await createTenant(shared.sql, { slug: newId(), config })
  await changeAccountConfig(shared.sql, accountId, { embeddedFallback }, Date.now())
  const { callId, token } = await node.createWebCall(accountId, { workerId })
  const leg = createScriptedLeg(shared.bus, callId)
  const browser = listen(shared.bus, callId)
  await node.admission.admit(token, null)
  leg.event({ type: 'connected', providerStatus: 'connected' })
  return {
    shared,
    node,
    browser,
    outcome: async () => {
      await browser.until((message) => message.type === 'bye')
      const [row] = await shared.sql`select outcome, failed_reason from calls where id = ${callId}`
      return row
    },
    replayed: async () => replay(await listCallEvents(shared.sql, callId)).differences,
    opened: (engine: ScriptedEngine, sessions: number) => until(() => engine.configs.length >= sessions),
  }
}

test('a provider that refuses the session is replaced by the embedded engine, and the log of it replays', async (t) => {
  const { node, browser, opened, replayed, outcome } = await callWith(t, down, true)
  await opened(node.engine, 1)
  await browser.until(status('in_progress'))
  node.engine.emit({ type: 'agent_text', itemId: 'a', text: 'Hello.' })
  node.engine.emit({ type: 'item_done', itemId: 'a' })
  node.engine.emit({ type: 'finished', nextAction: null })
  t.match(await outcome(), { outcome: 'completed' })
  t.same(await replayed(), [])
})

test('without leave of the account the call fails as it is documented', async (t) => {
  const { node, outcome, replayed } = await callWith(t, down, false)
  t.match(await outcome(), { outcome: 'failed', failedReason: 'voice_session_creation_failed' })
  t.equal(node.engine.configs.length, 0)
  t.same(await replayed(), [])
})

test('an agent that was heard is not replaced by another voice', async (t) => {
  const provider = createScriptedEngine()
  const { node, outcome, opened } = await callWith(t, provider, true)
  await opened(provider, 1)
  provider.say('a', 'Good morning.', 5)
  provider.emit({ type: 'failed', details: 'gone', isRetryable: false })
  t.match(await outcome(), { outcome: 'failed' })
  t.equal(node.engine.configs.length, 0)
})

test('an embedded engine that fails in its turn is not replaced by itself', async (t) => {
  const { node, outcome, opened } = await callWith(t, down, true)
  await opened(node.engine, 1)
  node.engine.emit({ type: 'failed', details: 'broken', isRetryable: false })
  t.match(await outcome(), { outcome: 'failed', failedReason: 'voice_session_creation_failed' })
  t.equal(node.engine.configs.length, 1)
})

test('a provider that is not set up here is replaced too', async (t) => {
  const { node, outcome, opened, replayed } = await callWith(t, down, true, { llmProvider: 'voice_provider_b' })
  await opened(node.engine, 1)
  node.engine.emit({ type: 'finished', nextAction: null })
  t.match(await outcome(), { outcome: 'completed' })
  t.same(await replayed(), [])
})
