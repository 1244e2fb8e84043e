/**
 * Owns passing the other side on to a number: our REFER and what its NOTIFYs say of it. RFC 3515, RFC 3420 (sipfrag). Peers differ: some
 * say nothing after the 202 and only stop their sound, some hang up in place of the last NOTIFY; every wait has an end.
 */
import type { Cancel, Clock } from '../../model/clock.ts'
import type { MessageIn, ResponseIn } from '../stack-types.ts'

export type ReferralDeps = {
  readonly clock: Clock
  /** Sends the REFER. */
  readonly send: (headers: Record<string, string>, done: (error: unknown, response?: ResponseIn) => void) => void
  /** Packets of sound that have come so far; null while the other side holds the call and none is expected. */
  readonly sound: () => number | null
  /** The other side is not gone although no sound comes. Told each second while a transfer is under way. */
  readonly alive: () => void
  readonly transferred: (line: string) => void
  readonly failed: (line: string) => void
}

export type Transfer = Promise<{ readonly accepted: true } | { readonly accepted: false; readonly details: string }>

export type Referral = {
  refer(target: string, referredBy: string): Transfer
  /** False: it is no NOTIFY of a REFER of ours. */
  notified(notify: MessageIn): boolean
  /** The other side hung up. True: that is how it was passed on. */
  hungUp(): boolean
  /** The call is over. */
  close(): void
}

/** Ms to the answer of the REFER, and to the last NOTIFY: the new callee may ring for long. */
const answerWithin = 35_000
const newsWithin = 90_000
/** Ms without sound: Asterisk passes a caller on to an application without a NOTIFY until that one's end. */
const soundStopsAfter = 15_000

type State = 'idle' | 'asked' | 'accepted'

export function createReferral(deps: ReferralDeps): Referral {
  const { clock, send, transferred, failed } = deps
  const wait = createWait(clock)
  const quiet = createQuietWatch(deps)
  let state: State = 'idle'
  let [settle, line] = [(_: Awaited<Transfer>): void => undefined, noNews]
  let underWay: { readonly target: string; readonly answer: Transfer } | null = null

  const rest = () => {
    wait.end()
    quiet.end()
    state = 'idle'
    underWay = null
  }
  const refused = (details: string) => {
    if (state !== 'asked') return
    rest()
    settle({ accepted: false, details })
  }
  const accepted = () => {
    if (state !== 'asked') return
    state = 'accepted'
    wait.begin(newsWithin, () => (quiet.isQuiet() ? finish(true, line) : finish(false, 'no word of the transfer came')))
    quiet.begin(() => finish(true, line))
    settle({ accepted: true })
  }
  const finish = (isDone: boolean, last: string) => {
    rest()
    ;(isDone ? transferred : failed)(last)
  }
  const asked = (error: unknown, response?: ResponseIn) => {
    const refusal = refusalIn(error, response)
    if (refusal === null) accepted()
    else refused(refusal)
  }

  return {
    refer(target, referredBy) {
      // An actor that took the call over asks for what its former one asked for.
      if (underWay?.target === target) return underWay.answer
      if (underWay) return Promise.resolve({ accepted: false, details: 'another transfer is under way' })
      const { promise: answer, resolve } = Promise.withResolvers<Awaited<Transfer>>()
      ;[state, settle, line, underWay] = ['asked', resolve, noNews, { target, answer }]
      wait.begin(answerWithin, () => refused('the other side did not say whether it transfers'))
      send({ 'Refer-To': `<${target}>`, 'Referred-By': `<${referredBy}>` }, asked)
      return answer
    },
    notified(notify) {
      if (state === 'idle' || !/^refer\b/i.test(notify.get('event') ?? 'refer')) return false
      // A NOTIFY may overtake the 202, and is consent as well. RFC 3515 §2.4.4.
      accepted()
      const news = readNews(notify)
      line = news.line ?? line
      if (news.status >= 200) finish(news.status < 300, line)
      else if (news.isLast) finish(false, line)
      // It says how it goes: it will say how it went, and may be without sound meanwhile. A 100 is no more than the 202.
      else if (news.status > 100) quiet.goOn()
      return true
    },
    hungUp() {
      if (state !== 'accepted') return false
      finish(true, line)
      return true
    },
    close() {
      refused('the call is over')
      rest()
    },
  }
}

function refusalIn(error: unknown, response?: ResponseIn): string | null {
  if (error || !response) return 'the transfer could not be asked for'
  return response.status < 300 ? null : `the other side answered ${response.status} ${response.reason}`
}

const noNews = '202 Accepted'

/** Who has consented and then stops its sound has passed the caller on. One that held the call before has none to stop. */
function createQuietWatch({ clock, sound, alive }: Pick<ReferralDeps, 'clock' | 'sound' | 'alive'>) {
  const lookEvery = 1_000
  let cancel: Cancel = () => undefined
  let quietMs = 0
  let mayGoOn = false
  const isQuiet = () => quietMs >= soundStopsAfter
  const look = (before: number, stopped: () => void) => {
    alive()
    const heard = sound() ?? before
    quietMs = heard === before ? quietMs + lookEvery : 0
    if (isQuiet() && !mayGoOn) return stopped()
    cancel = clock.after(lookEvery, () => look(heard, stopped))
  }
  return {
    isQuiet,
    begin(stopped: () => void) {
      const heard = sound()
      quietMs = 0
      mayGoOn = false
      if (heard) cancel = clock.after(lookEvery, () => look(heard, stopped))
    },
    goOn: () => void (mayGoOn = true),
    end: () => cancel(),
  }
}

/** One wait at a time. */
function createWait(clock: Clock) {
  let cancel: Cancel = () => undefined
  return {
    begin(ms: number, late: () => void) {
      cancel()
      cancel = clock.after(ms, late)
    },
    end: () => cancel(),
  }
}

/** The status line of the fragment; 0 without one. */
function readNews(notify: MessageIn): {
  readonly status: number
  readonly line: string | null
  readonly isLast: boolean
} {
  const [, status, reason = ''] = /^SIP\/2\.0 ([1-6]\d\d) ?(.*)$/m.exec(notify.body ?? '') ?? []
  const isLast = /^terminated/i.test(notify.get('subscription-state') ?? '')
  return { status: Number(status ?? 0), line: status === undefined ? null : `${status} ${reason.trim()}`, isLast }
}
