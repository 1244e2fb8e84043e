/** Owns when a call gets the embedded engine in place of its own: that one cannot be had, the account allows it, and the agent has not been heard yet. */
import type { AccountId } from '../../model/ids.ts'
import type { VoiceEngine } from '../../model/voice-engine.ts'
import { findAccount } from '../../store/accounts.ts'
import type { Sql, Transaction } from '../../store/sql.ts'
import type { CallFactsRow } from '../../store/call-rows.ts'
import type { CallFact } from './call-event.ts'
import { chooseEngine, type Engines } from './engine-choice.ts'

type Deps = { readonly sql: Sql; readonly engines: Engines }
type EngineFailed = Extract<CallFact, { type: 'engine_failed' }>

export async function allowsFallback(sql: Sql | Transaction, accountId: AccountId): Promise<boolean> {
  return (await findAccount(sql, accountId))?.config.embeddedFallback === true
}

/** Null: none that is set up here. */
export async function engineOf({ sql, engines }: Deps, call: CallFactsRow): Promise<VoiceEngine | null> {
  return chooseEngine(engines, call) ?? (await fallbackOf({ sql, engines }, call))
}

/** Null: the account does not allow it. */
export async function fallbackOf({ sql, engines }: Deps, call: CallFactsRow): Promise<VoiceEngine | null> {
  return (await allowsFallback(sql, call.accountId)) ? (engines.get('embedded') ?? null) : null
}

/** The fact, with `fallsBack` when the call may go on with the embedded engine. */
export async function withFallback(
  deps: Deps,
  { call, engine }: { readonly call: CallFactsRow; readonly engine: VoiceEngine },
  failure: EngineFailed,
): Promise<EngineFailed> {
  if (failure.hasSpoken === true || engine === deps.engines.get('embedded')) return failure
  return (await fallbackOf(deps, call)) === null ? failure : { ...failure, fallsBack: true }
}
