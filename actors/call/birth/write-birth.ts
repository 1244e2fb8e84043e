/** Owns how a call is born: its row, its first step and what that announces, in the transaction of whoever creates it. */
import type { NewId, SubscriptionId } from '../../../model/ids.ts'
import type { Json } from '../../../model/json.ts'
import { insertBirths, type Birth } from '../../../store/call-births.ts'
import type { CallBirthRow } from '../../../store/call-rows.ts'
import type { Claim } from '../../../store/call-steps.ts'
import type { Transaction } from '../../../store/sql.ts'
import { holdMatching } from '../../../store/subscriptions.ts'
import type { CallBirth } from '../call-event.ts'
import { statusUpdateOf } from '../record-effects.ts'
import { endRules } from '../machine/call-end.ts'
import { beginCall } from '../machine/step.ts'

/** What the creator knows; the rest follows from the first step. */
export type NewCall = Omit<CallBirthRow, keyof CallBirth | 'progress' | 'snapshot' | 'createdAt'>

export type Written = {
  readonly birth: Omit<CallBirth, 'rules'>
  readonly call: NewCall
  readonly now: number
  readonly newId: NewId
  /** Who is told of its status, held by the transaction; absent: they are looked for. */
  readonly takers?: readonly SubscriptionId[]
}

/** What stands in the row is the claim of the call's first actor, when the call has an owner and an epoch. */
export async function writeBirth(tx: Transaction, written: Written): Promise<Claim> {
  const born = birthOf(written, written.takers ?? (await takersOfBirth(tx, written.call)))
  await insertBirths(tx, [born])
  return claimOf(born)
}

/** Of calls that are all told to the same takers, or each to those that it names. In their order. */
export async function writeBirths(
  tx: Transaction,
  written: readonly (Written & { readonly takers: readonly SubscriptionId[] })[],
): Promise<Claim[]> {
  const born = written.map((one) => birthOf(one, one.takers))
  await insertBirths(tx, born)
  return born.map(claimOf)
}

/** What the row of such a call says of its first actor, before it is there. */
export const claimOfBirth = (written: Written): Claim => claimOf(birthOf(written, []))

const claimOf = ({ call: { accountId, epoch = 0, snapshot } }: Birth): Claim => ({
  accountId,
  epoch,
  version: 0,
  snapshot,
  leftFor: null,
})

function birthOf({ birth, call, now, newId }: Written, takers: readonly SubscriptionId[]): Birth {
  const { id, metadata } = call
  const born: CallBirth = { ...birth, rules: endRules }
  const { state, effects } = beginCall(born, now)
  const { trace: _, ...columns } = birth
  const row = { ...call, ...columns, progress: state.progress, snapshot: state.persisted, createdAt: now }
  // What else its first step asks for reaches out, and writes nothing.
  const [status] = effects
  if (status?.type !== 'announce_status') throw new Error('a call is born without a status')
  return {
    call: row,
    first: { event: { type: 'created', ...born }, effects: effects as Json, ignored: false, at: now },
    providerStatus: status.providerStatus,
    told: { event: statusUpdateOf({ id, metadata }, status, now), takers },
    now,
    newId,
  }
}

export const toldOfBirth = 'call.status_update'

export async function takersOfBirth(
  tx: Transaction,
  { accountId, workerId }: Pick<NewCall, 'accountId' | 'workerId'>,
): Promise<SubscriptionId[]> {
  const takers = await holdMatching(tx, { accountId, workerId, eventTypes: [toldOfBirth] })
  return takers.map(({ id }) => id)
}
