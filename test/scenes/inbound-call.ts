/** Owns the birth of one inbound call that no actor has claimed yet. */
import { createInboundCalls, type InboundBirth } from '../../actors/call/birth/create-inbound-call.ts'
import { takersOfBirth } from '../../actors/call/birth/write-birth.ts'
import type { CallId } from '../../model/ids.ts'
import type { Transaction } from '../../store/sql.ts'

export async function createInboundCall(tx: Transaction, birth: InboundBirth): Promise<CallId> {
  const { route } = birth
  const takers = await takersOfBirth(tx, { accountId: route.trunk.accountId, workerId: route.workerId })
  const [born] = await createInboundCalls(tx, [birth], { claims: false, takersOf: () => takers })
  return born!.callId
}
