/** Owns the order in which turns were said. Those that were found late have higher numbers than what was said behind them. Pure. */
import type { Turn } from './call.ts'

/** Only a turn that had ended before another one began goes in front of it: of those that overlap their numbers tell who was first. */
export function inSpokenOrder<Of extends Pick<Turn, 'from' | 'to'>>(turns: readonly Of[]): Of[] {
  const ordered: Of[] = []
  for (const turn of turns) {
    const before = ordered.findLastIndex(({ from }) => from <= turn.to)
    ordered.splice(before + 1, 0, turn)
  }
  return ordered
}
