/** What one call waits for, a provider that hangs, one that is down, or a receiver that never answers, no other call notices. */
import t, { test } from 'tap'
import type { WorkerRequestData } from '../../model/events.ts'
import { EngineRefusal, type VoiceEngine } from '../../model/voice-engine.ts'
import type { WorkerConfig } from '../../model/worker.ts'
import { createScriptedEngine } from '../fake/scripted-engine.ts'
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { listen, openCallNode, openShared, status, type CallNode, type Shared } from '../scenes/call-node.ts'
import { until } from '../scenes/in-time.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const sharing = openShared(t)
const many = 12

async function begin(shared: Shared, node: CallNode, config: WorkerConfig) {
  const { accountId, workerId } = await createTenant(shared.sql, { slug: newId(), config })
  const { callId, token } = await node.createWebCall(accountId, { workerId })
  const leg = createScriptedLeg(shared.bus, callId)
  const browser = listen(shared.bus, callId)
  await node.admission.admit(token, null)
  leg.event({ type: 'connected', providerStatus: 'connected' })
  return { callId, leg, browser }
}

test('many calls that wait for a provider or a receiver, and many whose provider is down, delay no other by a single tick of its clock', async (t) => {
  const shared = await sharing
  const never = new Promise<never>(() => {})
  let waiting = 0
  const hangs: VoiceEngine = { ...createScriptedEngine(), open: () => (waiting++, never) }
  const down: VoiceEngine = {
    ...createScriptedEngine(),
    open: () => Promise.reject(new EngineRefusal('it answered 503', true)),
  }
  const unanswered: string[] = []
  const hook = async ({ metadata, accountId }: WorkerRequestData) => {
    if (deaf.has(accountId)) return (unanswered.push(JSON.stringify(metadata)), never)
    return { kind: 'none' } as const
  }
  const deaf = new Set<string>()
  const node = await openCallNode(shared, hook, { provider: hangs, providers: { voice_provider_b: down } })
  t.teardown(() => node.close())
  const begun = shared.clock.now()
  for (let call = 0; call < many; call++) {
    await begin(shared, node, { llmProvider: 'voice_provider_a' })
    await begin(shared, node, { llmProvider: 'voice_provider_b' })
    const { accountId, workerId } = await createTenant(shared.sql, { slug: newId(), config: {} })
    deaf.add(accountId)
    const { token } = await node.createWebCall(accountId, { workerId })
    await node.admission.admit(token, null)
  }
  await until(() => waiting >= many && unanswered.length >= many)

  const { leg, browser } = await begin(shared, node, { llmProvider: 'embedded' })
  await browser.until(status('in_progress'))
  await until(() => node.engine.configs.length === 1)
  node.engine.say('a', 'Good morning.', 5)
  await until(() => leg.waiting() === 5)
  leg.play(5)
  node.engine.emit({ type: 'finished', nextAction: null })
  await browser.until((message) => message.type === 'bye')
  t.equal(shared.clock.now(), begun, 'nobody had to wait for a time to pass')
})
