/** Owns what an answer means to a check, and the sentence that says how to mend it. Pure. */
import { printable } from './printable.ts'
import type { ProbeAnswer } from './probe.ts'

export type Finding = {
  /** `warned`: it works, and something about it will hurt. */
  readonly verdict: 'passed' | 'warned' | 'failed'
  /** What came. */
  readonly got: string
  /** How to mend it; null when there is nothing to mend. */
  readonly mend: string | null
}

/** Slower than this is worth a warning. The caller of a sync hook waits on the line. */
export const slowAfter = 1_000

const mends = {
  timeout: 'Answer first and work afterwards: store the event, answer 2xx, and let a job of your own do the rest.',
  broken: 'The receiver broke the connection off: look for a crash in its log.',
  redirect: 'Redirects are not followed: name the final URL in the subscription, https and trailing slash included.',
  unauthorized:
    'This delivery is signed rightly. Is --secret the secret of the receiver, to the letter, whsec_ included? Compare the hex HMAC-SHA256 of the raw body bytes, before any parser has touched them.',
  gone: '410 disables the subscription: answer 2xx to what is signed rightly.',
  tooLarge: 'Raise the body limit of the receiver: many frameworks stop at 100 kB, a long call has more to tell.',
  slow: 'Answer within a second: store the event, answer, work afterwards.',
  other: 'Answer any 2xx to what is signed rightly; everything else is sent again.',
} as const

export const sayOf = (answer: ProbeAnswer): string => {
  if (answer.kind === 'failed') return answer.details
  const target = answer.location === null ? '' : ` to ${printable(answer.location).slice(0, 200)}`
  return `${answer.status}${target} in ${answer.ms} ms`
}

/** A delivery that must be taken. `mend` replaces the sentence for answers that say nothing themselves, like 500. */
export function accepted(answer: ProbeAnswer, mend: string = mends.other): Finding {
  if (answer.kind === 'failed') return failing(answer, answer.reason === 'timeout' ? mends.timeout : brokenOr(mend))
  const { status, ms } = answer
  if (status >= 300 && status <= 399) return failing(answer, mends.redirect)
  if (status === 401 || status === 403) return failing(answer, mend === mends.other ? mends.unauthorized : mend)
  if (status === 410) return failing(answer, mends.gone)
  if (status === 413) return failing(answer, mends.tooLarge)
  if (status < 200 || status > 299) return failing(answer, mend)
  return { verdict: ms > slowAfter ? 'warned' : 'passed', got: sayOf(answer), mend: ms > slowAfter ? mends.slow : null }
}

/** All of them must be taken; the worst one is the finding. */
export function allAccepted(answers: readonly ProbeAnswer[], mend?: string): Finding {
  const findings = answers.map((answer) => accepted(answer, mend))
  const worst =
    findings.find(({ verdict }) => verdict === 'failed') ?? findings.find(({ verdict }) => verdict === 'warned')
  return worst ?? { verdict: 'passed', got: answers.map(sayOf).slice(0, 3).join(', '), mend: null }
}

/** Both must be taken; `mend` is for the second, which is the unusual one. */
export function bothAccepted(first: ProbeAnswer, second: ProbeAnswer, mend: string): Finding {
  const finding = accepted(first)
  return finding.verdict === 'failed' ? finding : allAccepted([first, second], mend)
}

/** A forgery that must be refused with 4xx. */
export function refused(answer: ProbeAnswer, mend: string): Finding {
  if (answer.kind === 'failed') {
    const late = answer.reason === 'timeout'
    return failing(answer, late ? 'Refuse at once, with 401.' : `${mends.broken} Refuse with 401 instead.`)
  }
  const { status } = answer
  if (status >= 200 && status <= 299) return failing(answer, mend)
  if (status === 410)
    return { verdict: 'warned', got: sayOf(answer), mend: 'Answer 401: 410 to a delivery disables its subscription.' }
  if (status >= 400 && status <= 499) return { verdict: 'passed', got: sayOf(answer), mend: null }
  if (status >= 500) return failing(answer, 'The check of the signature crashes: a wrong signature is a 401.')
  return failing(answer, 'Answer 401 to what is not signed rightly.')
}

const failing = (answer: ProbeAnswer, mend: string): Finding => ({ verdict: 'failed', got: sayOf(answer), mend })

const brokenOr = (mend: string): string => (mend === mends.other ? mends.broken : `${mends.broken} ${mend}`)
