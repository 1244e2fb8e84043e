/** Owns the order in which turns were said. Those that were found late have higher numbers than what was said behind them. Pure. */
import type { Turn } from './call.ts'

type Numbered = Pick<Turn, 'from' | 'to'> & { readonly turnIndex: number }

/** The others stand as they are: times of what is heard behind a take-over are not exact enough to say who was first. `turns`: by their numbers. */
export function inSpokenOrder<Of extends Numbered>(turns: readonly Of[], found: ReadonlySet<number>): Of[] {
  if (found.size === 0) return [...turns]
  const ordered = turns.filter(({ turnIndex }) => !found.has(turnIndex))
  for (const turn of turns) {
    if (!found.has(turn.turnIndex)) continue
    const before = ordered.findLastIndex(({ from }) => from <= turn.to)
    ordered.splice(before + 1, 0, turn)
  }
  return ordered
}
