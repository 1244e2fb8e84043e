/**
 * Owns the checks of what a receiver must refuse. Every forgery spoils both signatures, so that it does not matter which of them a
 * receiver looks at.
 */
import type { SignedRequest } from './probe.ts'
import type { Check, Stage } from './stage.ts'
import { refused, type Finding } from './verdicts.ts'

const day = 86_400_000
const hexName = 'X-Service-Signature'
const standardName = 'webhook-signature'
const version = 'v1,'

const mends = {
  unverified:
    'Compute the hex HMAC-SHA256 of the raw body with the signing secret, compare it with X-Service-Signature in constant time, and answer 401 before anything else when it differs.',
  raw: 'Hash the raw bytes of the body, not JSON that was parsed and written again: this body was changed after it was signed, and it was taken.',
  missing: 'A delivery without signature is nobody’s: answer 401.',
  exact: 'Compare the whole header to the letter: 64 lower-case hex digits.',
  stale:
    'Only webhook-timestamp tells the age of a delivery (X-Service-Timestamp is not signed). To be safe from recorded deliveries check webhook-signature too and refuse what is more than 5 minutes old; dropping known event ids helps as long as they are remembered.',
} as const

export const signatureChecks: readonly Check[] = [
  forgery('tampered-body', 'a body that was changed', mends.unverified, (good) => ({
    ...good,
    body: good.body.replace('"user"', '"agent"'),
  })),
  forgery('added-space', 'a body with one space more', mends.raw, (good) => ({ ...good, body: `${good.body} ` })),
  forgery('tampered-signature', 'a signature with one digit changed', mends.unverified, (good) =>
    resigned(good, (signature) => `${signature.startsWith('a') ? 'b' : 'a'}${signature.slice(1)}`),
  ),
  forgery('missing-signature', 'no signature at all', mends.missing, ({ headers, body }) => ({
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => name !== hexName && name !== standardName)),
    body,
  })),
  forgery('other-secret', 'the signature of another secret', mends.unverified, (good, stage) =>
    stage.sign(JSON.parse(good.body) as Parameters<Stage['sign']>[0], { secret: 'whsec_of-somebody-else' }),
  ),
  forgery('uppercase-signature', 'a signature in upper case', mends.exact, (good) =>
    resigned(good, (signature) => signature.toUpperCase()),
  ),
  forgery('truncated-signature', 'half of a signature', mends.exact, (good) =>
    resigned(good, (signature) => signature.slice(0, signature.length / 2)),
  ),
  {
    name: 'stale-timestamp',
    group: 'signatures',
    expected: '4xx to a delivery of yesterday that is played again',
    run: checkStale,
  },
]

function forgery(
  name: string,
  what: string,
  mend: string,
  forge: (good: SignedRequest, stage: Stage) => SignedRequest,
): Check {
  const run = async (stage: Stage): Promise<Finding> => {
    const good = stage.sign(stage.call.transcript('Nobody at all said this.'))
    return refused(await stage.post(forge(good, stage)), mend)
  }
  return { name, group: 'signatures', expected: `4xx to ${what}`, run }
}

function resigned({ headers, body }: SignedRequest, spoil: (signature: string) => string): SignedRequest {
  const [hex = '', standard = ''] = [headers[hexName], headers[standardName]]
  const spoiled = { [hexName]: spoil(hex), [standardName]: `${version}${spoil(standard.slice(version.length))}` }
  return { headers: { ...headers, ...spoiled }, body }
}

/** The documented headers alone cannot tell: taking it is a warning. */
async function checkStale({ call, now, deliver }: Stage): Promise<Finding> {
  const answer = await deliver(call.transcript('This was said yesterday.'), { sentAt: now() - day })
  const finding = refused(answer, mends.stale)
  const taken = answer.kind === 'answered' && answer.status >= 200 && answer.status <= 299
  return taken ? { ...finding, verdict: 'warned' } : finding
}
