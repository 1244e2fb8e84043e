/**
 * Owns which engine takes the place of one that cannot be had or is lost: the next one that the call's configuration names, in the midst of the talk as
 * well; and where none is left and the account allows it the embedded one, as long as the agent has not been heard.
 */
import type { AccountId } from '../../model/ids.ts'
import type { VoiceEngine } from '../../model/voice-engine.ts'
import type { LlmProvider } from '../../model/worker.ts'
import { findAccount } from '../../store/accounts.ts'
import type { Sql, Transaction } from '../../store/sql.ts'
import type { CallFactsRow } from '../../store/call-rows.ts'
import type { CallFact } from './call-event.ts'
import { chooseEngine, configOf, type Configured, type Engines } from './engine-choice.ts'

type Deps = { readonly sql: Sql; readonly engines: Engines }
type EngineFailed = Extract<CallFact, { type: 'engine_failed' }>

export async function allowsFallback(sql: Sql | Transaction, accountId: AccountId): Promise<boolean> {
  return (await findAccount(sql, accountId))?.config.embeddedFallback === true
}

/** Null: none that is set up here. */
export async function engineOf({ sql, engines }: Deps, call: CallFactsRow): Promise<VoiceEngine | null> {
  return chooseEngine(engines, call) ?? nextOf(engines, call, {}) ?? (await fallbackOf({ sql, engines }, call))
}

/** The embedded one. Null: the account does not allow it. */
export async function fallbackOf({ sql, engines }: Deps, call: CallFactsRow): Promise<VoiceEngine | null> {
  return (await allowsFallback(sql, call.accountId)) ? (engines.get('embedded') ?? null) : null
}

/** `named`: it has taken the place of the call's own before. `engine`: what was lost; absent: there was none. */
type Lost = { readonly named?: LlmProvider | undefined; readonly engine?: VoiceEngine | null }

/** Those that are left, in their order. Nobody goes back: what was lost once is lost for the call. */
function leftFor(engines: Engines, call: Configured, { named, engine = null }: Lost): LlmProvider[] {
  const { testModeEnabled, fallbackProviders = [] } = configOf(call)
  if (testModeEnabled || (named !== undefined && !fallbackProviders.includes(named))) return []
  const own = chooseEngine(engines, call)
  return fallbackProviders.slice(named === undefined ? 0 : fallbackProviders.indexOf(named) + 1).filter((provider) => {
    const candidate = engines.get(provider)
    return candidate !== undefined && candidate !== own && candidate !== engine
  })
}

function nextOf(engines: Engines, call: Configured, lost: Lost): VoiceEngine | null {
  const [provider] = leftFor(engines, call, lost)
  return (provider && engines.get(provider)) ?? null
}

/** All that may be tried for a call before it begins, its own first. */
export async function enginesFor(deps: Deps, call: CallFactsRow): Promise<readonly VoiceEngine[]> {
  const own = chooseEngine(deps.engines, call)
  const named = leftFor(deps.engines, call, {}).map((provider) => deps.engines.get(provider))
  const all = [own, ...named, await fallbackOf(deps, call)]
  return [...new Set(all)].filter((engine) => engine !== null && engine !== undefined)
}

/** Is there another one, whatever the agent has said? */
export const isReplaceable = (engines: Engines, call: Configured, lost: Lost): boolean =>
  leftFor(engines, call, lost).length > 0

/** The fact, with what takes the place of the engine. */
export async function withFallback(
  deps: Deps,
  { call, ...lost }: Lost & { readonly call: CallFactsRow },
  failure: EngineFailed,
): Promise<EngineFailed> {
  const [fallsBackTo] = leftFor(deps.engines, call, lost)
  if (fallsBackTo) return { ...failure, fallsBackTo }
  if (failure.hasSpoken === true || lost.engine === deps.engines.get('embedded')) return failure
  if ((await fallbackOf(deps, call)) === null) return failure
  return lost.named === undefined ? { ...failure, fallsBack: true } : { ...failure, fallsBackTo: 'embedded' }
}
