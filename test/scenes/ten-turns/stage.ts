/** Owns the stage for conversations of ten turns: the service with every engine, a line for each, and what the caller will say. */
import type { Test } from 'tap'
import type { LlmProvider } from '../../../model/worker.ts'
import { openEngineStage, type EngineLine, type EngineStage } from '../engine-stage.ts'
import { inTime } from '../in-time.ts'
import { tenTurnsScript, tool, toolResult } from './conversation.ts'
import { speechesOf, type Speeches } from './caller.ts'
import { proveQuiet, proveTenTurns } from './proof.ts'
import { openProviders, type Provider } from './providers.ts'

export const everyEngine: readonly LlmProvider[] = ['embedded', 'voice_provider_a', 'voice_provider_b', 'cascade']

export type TenTurnsStage = {
  readonly stage: EngineStage
  readonly speeches: Speeches
  lineOf(engine: LlmProvider): EngineLine
  /** Of a call that is over. */
  prove(t: Test, engine: LlmProvider): Promise<void>
  /** The service is closed: nothing is left of it, here and at the providers. */
  /** `sessions`: of providers that get more than one; one that is tried before the answer counts where it cannot be the one of the talk. */
  end(t: Test, sessions?: { readonly [provider in LlmProvider]?: number }): Promise<void>
}

export async function openTenTurns(t: Test): Promise<TenTurnsStage> {
  const providers = await openProviders(t)
  const settings = Object.assign({}, ...[...providers.values()].map((provider) => provider.settings))
  const stage = await openEngineStage(t, settings)
  const lines = new Map<LlmProvider, EngineLine>()
  const answer = { status: 200, body: JSON.stringify({ result: toolResult }) }
  for (const llmProvider of everyEngine) {
    const options = { name: llmProvider, script: tenTurnsScript, config: { llmProvider }, tool }
    lines.set(llmProvider, await stage.addLine({ ...options, toolAnswers: [answer] }))
  }
  return {
    stage,
    speeches: await speechesOf(stage.embedded),
    lineOf: (engine) => lines.get(engine)!,
    async prove(t, engine) {
      const heardMs = await proveTenTurns(t, stage, lines.get(engine)!, engine)
      proveProvider(t, providers.get(engine), heardMs)
    },
    async end(t, sessions = {}) {
      t.equal(stage.service.running(), 0, 'no call is left')
      await stage.close()
      proveQuiet(t, stage, [...lines.values()])
      for (const [name, { line }] of providers) {
        await inTime(`${name}: all connections to be closed`, line.idle())
        if (name === 'cascade') t.ok(line.count() > 0)
        else t.equal(line.count(), sessions[name] ?? 1, `${name}: no more sessions than were needed`)
      }
    },
  }
}

/** `heardMs`: of the question that was spoken into. */
function proveProvider(t: Test, provider: Provider | undefined, heardMs: number): void {
  if (!provider) return
  t.same(provider.flaws(), [], 'the provider was asked nothing that it forbids')
  const told = provider.heardOfCut()
  if (told !== null) t.equal(told, heardMs, 'the provider knows how much was heard')
}
