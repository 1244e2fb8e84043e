/** Owns how a call is born: its row, its first step and what that announces, in the transaction of whoever creates it. */
import type { NewId } from '../../../model/ids.ts'
import type { Json } from '../../../model/json.ts'
import type { CallBirthRow } from '../../../store/call-rows.ts'
import { insertCall } from '../../../store/call-steps.ts'
import type { Transaction } from '../../../store/sql.ts'
import type { CallBirth } from '../call-event.ts'
import { recordEffects } from '../record-effects.ts'
import { endRules } from '../machine/call-end.ts'
import { beginCall } from '../machine/step.ts'

/** What the creator knows; the rest follows from the first step. */
export type NewCall = Omit<CallBirthRow, keyof CallBirth | 'progress' | 'snapshot' | 'createdAt'>

export async function writeBirth(
  tx: Transaction,
  { birth, call, now, newId }: { birth: Omit<CallBirth, 'rules'>; call: NewCall; now: number; newId: NewId },
): Promise<void> {
  const born: CallBirth = { ...birth, rules: endRules }
  const { state, effects } = beginCall(born, now)
  const row = { ...call, ...birth, progress: state.progress, snapshot: state.persisted, createdAt: now }
  await insertCall(tx, row, {
    event: { type: 'created', ...born },
    effects: effects as Json,
    ignored: false,
    at: now,
  })
  await recordEffects({ tx, callId: call.id, now, newId }, effects)
}
