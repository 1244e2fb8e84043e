/** Owns the examination of a receiver: which checks there are, their order, and what they found. */
import { createEgressGuard } from '../../actors/webhooks/egress-guard.ts'
import type { Clock } from '../../model/clock.ts'
import type { NewId } from '../../model/ids.ts'
import { Problem } from '../../model/problem.ts'
import { defaultHookTimeout } from '../../model/webhook.ts'
import type { CheckReport } from '../check-lines.ts'
import { deliveryChecks } from './delivery-checks.ts'
import { hookChecks } from './hook-checks.ts'
import { createProbe } from './probe.ts'
import { signatureChecks } from './signature-checks.ts'
import { createStage, type Check, type Stage } from './stage.ts'
import { accepted } from './verdicts.ts'

export type Examination = {
  readonly url: string
  /** What the operator should know about the address itself; null when there is nothing. */
  readonly note: string | null
  /** Nothing failed and nothing was skipped. Warnings do not count. */
  readonly passed: boolean
  readonly checks: readonly CheckReport[]
}

export type ExamineOptions = {
  readonly url: URL
  readonly secret: string
  /** Names of checks or of groups; null runs all. */
  readonly only: readonly string[] | null
  /** Milliseconds an answer may take; null: 10 s, and 5 s for sync hooks. */
  readonly timeout: number | null
  /** Those of the subscription. */
  readonly headers: Readonly<Record<string, string>>
  readonly clock: Clock
  readonly newId: NewId
}

const asyncTimeout = 10_000

/** Runs first whatever is asked for: without an answer no other check means anything. */
const reachable: Check = {
  name: 'reachable',
  group: 'deliveries',
  expected: '2xx to a good delivery, or at least an answer',
  async run({ call, deliver }) {
    const answer = await deliver(call.statusUpdate())
    const finding = accepted(answer)
    // An answer that is no 2xx is for the checks to judge; told here too because it explains them all.
    if (answer.kind === 'answered') return { ...finding, verdict: finding.verdict === 'passed' ? 'passed' : 'warned' }
    if (answer.reason !== 'transport') return finding
    return { ...finding, mend: 'Is the receiver running, is the address right, is its certificate valid?' }
  },
}

const furtherChecks: readonly Check[] = [...deliveryChecks, ...signatureChecks, ...hookChecks]

/** One check after the other. Throws Problem VALIDATION_FAILED for a name in `only` that is no check. */
export async function examine(options: ExamineOptions): Promise<Examination> {
  const { url, secret, timeout, headers, clock, newId } = options
  const chosen = chooseChecks(options.only)
  const timeouts = { async: timeout ?? asyncTimeout, sync: timeout ?? defaultHookTimeout }
  const probe = createProbe({ url, clock })
  const accountId = newId<'account'>()
  const stageOfCheck = (): Stage =>
    createStage({ probe, secret, newId, now: clock.now, accountId, customHeaders: headers, timeouts })
  try {
    const first = await reportOf(reachable, stageOfCheck())
    const checks = [first]
    for (const check of chosen)
      checks.push(first.verdict === 'failed' ? skipped(check) : await reportOf(check, stageOfCheck()))
    const passed = checks.every(({ verdict }) => verdict === 'passed' || verdict === 'warned')
    return { url: url.href, note: noteOn(url), passed, checks }
  } finally {
    await probe.close()
  }
}

/** The doctor goes wherever it is pointed to, the service does not. Names are judged when they are resolved, so not here. */
function noteOn(url: URL): string | null {
  const guard = createEgressGuard({ allowHosts: [] })
  const refusal = guard.refusalOf(url)
  guard.close()
  return refusal && `The service sends here only when WEBHOOK_ALLOW_HOSTS names it: ${refusal}.`
}

function chooseChecks(only: readonly string[] | null): readonly Check[] {
  if (only === null) return furtherChecks
  const known = new Set([reachable, ...furtherChecks].flatMap(({ name, group }) => [name, group]))
  const unknown = only.filter((name) => !known.has(name))
  if (unknown.length > 0)
    throw new Problem(
      'VALIDATION_FAILED',
      `--only: no such check: ${unknown.join(', ')}; there are ${[...known].join(', ')}`,
    )
  return furtherChecks.filter(({ name, group }) => only.includes(name) || only.includes(group))
}

async function reportOf({ name, expected, run }: Check, stage: Stage): Promise<CheckReport> {
  return { name, expected, ...(await run(stage)) }
}

const skipped = ({ name, expected }: Check): CheckReport => ({
  name,
  verdict: 'skipped',
  expected,
  got: 'nothing: the receiver cannot be reached',
  mend: null,
})
