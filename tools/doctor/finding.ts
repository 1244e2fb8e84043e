/** Owns what an examination finds: a finding of a check that went well, needs a look or fails, never an exception. */
import { deadline } from '../../model/deadline.ts'
import { systemClock } from '../../app/clock.ts'
import type { CheckReport } from '../check-lines.ts'

export type Finding = CheckReport

/** `expected` is what is well; `look` says what there is instead. */
export type Check = { readonly name: string; readonly expected: string; look(): Promise<Looked> | Looked }
export type Looked = { readonly verdict: Finding['verdict']; readonly got: string; readonly mend?: string }

export const well = (got: string): Looked => ({ verdict: 'passed', got })
export const doubtful = (got: string, mend: string): Looked => ({ verdict: 'warned', got, mend })
export const bad = (got: string, mend: string): Looked => ({ verdict: 'failed', got, mend })
export const leftOut = (got: string): Looked => ({ verdict: 'skipped', got })

const looksFor = 15_000

/** All of them beside each other, in their order. */
export const examine = (checks: readonly Check[]): Promise<readonly Finding[]> => Promise.all(checks.map(findingOf))

async function findingOf({ name, expected, look }: Check): Promise<Finding> {
  const late = (): Looked =>
    bad(`nothing came of it within ${looksFor / 1000} s`, 'Look at the checks before this one, and try again.')
  const looked = await deadline(systemClock, looksFor, Promise.try(look).catch(unexpected), late)
  return { name, expected, verdict: looked.verdict, got: looked.got, mend: looked.mend ?? null }
}

const unexpected = (error: unknown): Looked =>
  bad(
    error instanceof Error ? error.message : String(error),
    'That was not expected of this check; what it says is all that is known.',
  )

/** `ok`, `warn`, `fail`, `skipped`: for programs that read it. */
export const resultOf = (findings: readonly Finding[]) => ({
  ok: findings.every(({ verdict }) => verdict !== 'failed'),
  findings: findings.map(({ name, verdict, expected, got, mend }) => ({
    check: name,
    result: results[verdict],
    expected,
    got,
    mend,
  })),
})

const results = { passed: 'ok', warned: 'warn', failed: 'fail', skipped: 'skipped' } as const
