/** Owns a web call that has been answered on a node of a call scene: its scripted engine listens, its leg is scripted, its browser is told. */
import { createScriptedLeg } from '../fake/scripted-leg.ts'
import { listen, status, type CallNode, type Shared } from './call-node.ts'
import { createTenant, newId } from './tenant.ts'

export async function openWebTalk(shared: Shared, node: CallNode) {
  const { accountId, workerId } = await createTenant(shared.sql, { slug: newId() })
  const { callId, token } = await node.createWebCall(accountId, { workerId })
  const leg = createScriptedLeg(shared.bus, callId)
  const browser = listen(shared.bus, callId)
  await node.admission.admit(token, null)
  leg.event({ type: 'connected', providerStatus: 'connected' })
  await browser.until(status('in_progress'))
  while (node.engine.configs.length === 0) await shared.bus.flush()
  return { accountId, callId, leg, browser }
}
