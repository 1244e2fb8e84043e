/** Owns the numbers of calls in a span of time, as a tool answers them. Pure. */
import { z } from 'zod'
import { callStatusOf, CallStatus, Direction } from '../../model/call.ts'
import { toIso } from '../../model/clock.ts'
import { TerminalStatus } from '../../model/outcome.ts'
import type { CallCount } from '../../store/call-reports.ts'

const Count = z.number().int()

export const CallAnalytics = z.object({
  from: z.string().nullable(),
  to: z.string().nullable(),
  total: Count,
  by_status: z.object(countsOf(CallStatus.options)),
  by_outcome: z.object(countsOf(TerminalStatus.options)),
  by_direction: z.object(countsOf(Direction.options)),
  answered: Count.describe('Calls that were answered and are over.'),
  average_duration_seconds: z.number().nullable().describe('Of those, from answer to end; null when there were none.'),
})
export type CallAnalytics = z.infer<typeof CallAnalytics>

function countsOf<Name extends string>(names: readonly Name[]) {
  return Object.fromEntries(names.map((name) => [name, Count])) as Record<Name, typeof Count>
}

export function analyticsOf(
  counts: readonly CallCount[],
  { from, to }: { readonly from?: number | undefined; readonly to?: number | undefined },
): CallAnalytics {
  const sum = (fits: (count: CallCount) => boolean): number =>
    counts.filter(fits).reduce((total, { calls }) => total + calls, 0)
  const by = <Name extends string>(names: readonly Name[], nameOf: (count: CallCount) => string) =>
    Object.fromEntries(names.map((name) => [name, sum((count) => nameOf(count) === name)])) as Record<Name, number>
  const answered = counts.reduce((total, { talks }) => total + talks, 0)
  const talkedMs = counts.reduce((total, one) => total + one.talkedMs, 0)
  return {
    from: from === undefined ? null : toIso(from),
    to: to === undefined ? null : toIso(to),
    total: sum(() => true),
    by_status: by(CallStatus.options, ({ progress }) => callStatusOf(progress)),
    by_outcome: by(TerminalStatus.options, ({ progress }) => progress),
    by_direction: by(Direction.options, ({ direction }) => direction),
    answered,
    average_duration_seconds: answered === 0 ? null : Math.round(talkedMs / answered) / 1000,
  }
}
