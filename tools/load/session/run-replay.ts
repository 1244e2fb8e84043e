/** Owns recorded calls as a load: session files in turns, each made again when it is due, and judged by what it expects. */
import { createRandom } from '../../chaos/random.ts'
import { openSipExchange, type SipExchange } from '../../callers/sip-exchange.ts'
import { allowedHostsOf, type AllowedHosts } from '../allowed-hosts.ts'
import { prepareCallerSound, type CallerSound } from '../caller-sound.ts'
import { weathered, type LoadLine } from '../load-line.ts'
import { endedOrHeld, placeAll, tellQuality, untilOrStopped, type RunDeps } from '../run-load.ts'
import { reached } from '../sip-line.ts'
import { openWebLine } from '../web-line.ts'
import { hear, playSound, type Heard } from './replay-sound.ts'
import { replaySip } from './replay-sip.ts'
import { readSession } from './read-session.ts'
import { rewriteOffer } from './rewrite-offer.ts'
import { needsService, unmetOf } from './session-check.ts'
import type { Session, SignalLine } from './session-format.ts'

type Parts = RunDeps & {
  readonly sound: CallerSound
  readonly exchange: SipExchange | null
  readonly allowed: AllowedHosts
}

const now = (): number => performance.now()
/** Behind the last thing that was recorded, ms. */
const lingers = 500

export async function runReplay(deps: RunDeps): Promise<void> {
  const { job, tally, stopping } = deps
  await using closing = new AsyncDisposableStack()
  const sessions = await Promise.all(job.files.map(readSession))
  const hasSip = sessions.some(({ head }) => head.kind === 'sip')
  const target = hasSip ? job.sip?.target : null
  const exchange = target ? await reached(target, () => openSipExchange(target)) : null
  if (exchange) closing.defer(() => exchange.close())
  const parts = { ...deps, exchange, sound: prepareCallerSound([]), allowed: await allowedHostsOf(job.allowedHosts) }
  await placeAll(job, { tally, stopping }, (index, due) => {
    const session = sessions[index % sessions.length]
    return session ? replay(parts, session, { index, due }) : Promise.resolve()
  })
}

type Made = { readonly line: LoadLine; readonly anchor: number; act(over: AbortSignal): Promise<void> }

async function replay(parts: Parts, session: Session, { index, due }: { index: number; due: number }): Promise<void> {
  const { job, tally, stopping, sound } = parts
  const beganAt = Date.now()
  const calling = callingOf(session, index)
  const judged = { callId: null, calling, beganAt, audioAfter: null }
  const made = await make(parts, session, calling).catch(async (error: unknown) => {
    const unmet = await unmetOf(session, { ...judged, answeredAfter: null }, { web: null, stopping })
    unmet.forEach((text) => tally.unmet(text))
    throw error
  })
  const answeredAfter = now() - due
  tally.value('setUp', answeredAfter)
  tally.count('answered')
  const line = weathered(made.line, job.weather, { random: createRandom(job.arrivals.seed + index), tally })
  const heard = hear(line, session.head, sound, tally)
  try {
    await perform({ ...made, line }, session, { heard, parts, answeredAfter })
  } finally {
    tellQuality(tally, heard.stop())
    await line.hangUp()
  }
  tally.count('completed')
  const call = { ...judged, callId: line.callId, answeredAfter, audioAfter: heard.audioAfter() }
  for (const text of await unmetOf(session, call, { web: job.web, stopping })) tally.unmet(text)
}

async function perform(
  made: Made,
  session: Session,
  { heard, parts: { tally, stopping }, answeredAfter }: { heard: Heard; parts: Parts; answeredAfter: number },
): Promise<void> {
  const over = new AbortController()
  const either = AbortSignal.any([over.signal, stopping])
  const lasts = Math.max(lingers, lastAt(session) - made.anchor + lingers)
  const plays = playSound(made.line, session, { tally, over: either, anchor: made.anchor })
  const acts = made.act(either)
  try {
    const isEnded = await endedOrHeld(made.line, lasts, stopping)
    if (isEnded) tally.count('endedByService')
  } finally {
    over.abort()
    const results = await Promise.allSettled([plays, acts])
    for (const result of results) if (result.status === 'rejected') tally.error(wordsOf(result.reason))
  }
  const after = heard.audioAfter()
  if (after !== null) tally.value('firstAudio', answeredAfter + after)
}

const wordsOf = (reason: unknown): string => (reason instanceof Error ? reason.message : String(reason))

const lastAt = ({ sip, signals, rtp }: Session): number =>
  [sip, signals, rtp].reduce((last, lines) => Math.max(last, lines.at(-1)?.at ?? 0), 0)

/** Of a range that is reserved for examples (NANP 555-01XX): where the service is asked about a call, it must be known by its number. */
const callingOf = (session: Session, index: number): string | null =>
  session.head.kind === 'sip' && needsService(session)
    ? `+1202555${String(100 + (index % 100)).padStart(4, '0')}`
    : null

function make(parts: Parts, session: Session, calling: string | null): Promise<Made> {
  const { job, exchange, allowed, tally } = parts
  if (session.head.kind === 'web') return makeWeb(parts, session)
  if (!exchange || !job.sip)
    return Promise.reject(new Error(`${session.file}: nobody said where calls by telephone go: --sip`))
  const refused = (words: string): void => tally.error(words)
  return replaySip({ session, exchange, allowed, called: job.sip.called, calling, refused })
}

async function makeWeb({ job, allowed }: Parts, session: Session): Promise<Made> {
  const { web } = job
  const offer = session.signals.find(isOffer)
  if (!web) throw new Error(`${session.file}: nobody said where calls by web go: --url and --key`)
  if (!offer) throw new Error(`${session.file}: it has no offer`)
  const line = await openWebLine({
    web,
    allowed,
    codecs: ['opus', 'pcmu'],
    offerOf: (own) => rewriteOffer(offer.message.sdp, own),
  })
  if (line.audio.codec !== session.head.codec) {
    await line.hangUp()
    throw new Error(`the service chose ${line.audio.codec}, and ${session.head.codec} was recorded`)
  }
  const anchor =
    session.signals.find(({ by, message }) => by === 'service' && message.type === 'answer')?.at ?? offer.at
  return {
    line,
    anchor,
    async act(over) {
      const began = now()
      for (const { at, by, message } of session.signals) {
        // What opens the call, and what belongs to the end that was recorded, is ours.
        if (by !== 'caller' || message.type === 'offer' || message.type === 'candidate' || message.type === 'bye')
          continue
        await untilOrStopped(began + (at - anchor) - now(), over)
        if (over.aborted) return
        line.signal(message)
      }
    },
  }
}

type OfferLine = SignalLine & {
  readonly by: 'caller'
  readonly message: { readonly type: 'offer'; readonly sdp: string }
}
const isOffer = (line: SignalLine): line is OfferLine => line.by === 'caller' && line.message.type === 'offer'
