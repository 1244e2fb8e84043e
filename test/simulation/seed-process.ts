/** Owns a process that simulates one world after the other, as it is told: each message is a seed, each answer what became of it. */
import process from 'node:process'
import { planOf } from './plan.ts'
import { shrink } from './shrink.ts'
import { openStage } from './stage.ts'
import { simulate, type Outcome } from './world.ts'

export type SeedAnswer = Omit<Outcome, 'notes'> & { readonly smallest: Omit<Outcome, 'notes'> | null }

const stage = await openStage()
const run = async (seed: number): Promise<SeedAnswer> => {
  const outcome = await simulate(planOf(seed), stage)
  const smallest = outcome.violations.length > 0 ? await shrink(outcome, stage) : null
  return { ...outcome, smallest }
}
process.on('message', (seed: number) => {
  void run(seed).then((answer) => process.send?.(answer))
})
process.once('disconnect', () => {
  void stage.close().then(() => process.exit(0))
})
process.send?.(null)
