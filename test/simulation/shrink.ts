/** Owns making a world that fails smaller, as long as it fails: what is left is what the failure needs. */
import { smallerPlans, type Plan } from './plan.ts'
import type { Stage } from './stage.ts'
import { simulate, type Outcome } from './world.ts'

/** Worlds at most. */
const mostTries = 150

/** `failed` failed; so does what is returned. */
export async function shrink(failed: Outcome, stage: Stage): Promise<Outcome> {
  let smallest = failed
  let tries = 0
  const smallerOne = async (plan: Plan): Promise<Outcome | null> => {
    for (const smaller of smallerPlans(plan)) {
      if (++tries > mostTries) return null
      const outcome = await simulate(smaller, stage)
      if (outcome.violations.length > 0) return outcome
    }
    return null
  }
  for (let next: Outcome | null = failed; next; next = await smallerOne(smallest.plan)) smallest = next
  return smallest
}
