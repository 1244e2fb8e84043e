/** Owns a call that is placed to be recorded: a synthetic caller talks, and what goes over the wire becomes a session file. */
import { systemClock } from '../../../app/clock.ts'
import { createTicker } from '../../../media/ticker/ticker.ts'
import type { RtpPacket } from '../../../model/rtp-transport.ts'
import { writeMessage } from '../../../sip/server/message/write-message.ts'
import type { Told } from '../../callers/raw-sip-caller.ts'
import { allowedHostsOf } from '../allowed-hosts.ts'
import { prepareCallerSound } from '../caller-sound.ts'
import type { Called } from '../called-target.ts'
import type { Way } from '../load-job.ts'
import type { LoadLine } from '../load-line.ts'
import { talk } from '../load-talk.ts'
import { createLoadTally } from '../load-tally.ts'
import { endedOrHeld } from '../run-load.ts'
import { openSipLines } from '../sip-line.ts'
import { openWebLine } from '../web-line.ts'
import type { SessionHead } from './session-format.ts'
import { sessionText, type RecordedLine } from './write-session.ts'

export type RecordWish = {
  readonly way: Way
  readonly called: Pick<Called, 'web' | 'sip'>
  readonly allowedHosts: readonly string[]
  readonly phrases: readonly Int16Array[]
  readonly holdMs: number
  readonly stopping: AbortSignal
}

const now = (): number => performance.now()
/** What is expected of the next time: so many times as long as it took, and a second. */
const patience = 3
const maxWithin = 600_000

/** The text of the file. Rejects when the call does not come about. */
export async function recordCall(wish: RecordWish): Promise<string> {
  await using closing = new AsyncDisposableStack()
  const ticker = createTicker({ now, after: (ms, action) => systemClock.after(ms, action) })
  closing.defer(() => ticker.close())
  const began = now()
  const lines: RecordedLine[] = []
  const recordedAt = new Date().toISOString()
  const add = (line: RecordedLine): void => void lines.push(line)
  const at = (): number => now() - began
  const line = recorded(await open(wish, { add, at }, closing), { add, at })
  const answeredAfter = at()
  const tally = createLoadTally()
  const sound = prepareCallerSound(wish.phrases)
  const talking = talk({ line, sound, ticker, tally, due: began, now })
  try {
    await endedOrHeld(line, wish.holdMs, wish.stopping)
  } finally {
    talking.stop()
    await line.hangUp()
  }
  const [heardAfter] = tally.take().values.firstAudio ?? []
  const expected = [
    { type: 'expect', answerWithin: withinOf(answeredAfter) },
    ...(heardAfter === undefined
      ? []
      : [{ type: 'expect', audioWithin: withinOf(heardAfter - answeredAfter) } as const]),
  ] as const
  const { codec, payloadType, clockRateHz } = line.audio
  const transport = wish.way === 'sip' ? { transport: wish.called.sip?.target.protocol ?? 'udp' } : {}
  const head: SessionHead = {
    parleySession: 1,
    kind: wish.way,
    source: 'call',
    codec,
    payloadType,
    clockRateHz,
    ...transport,
    recordedAt,
  }
  return sessionText(head, [...lines, ...expected])
}

const withinOf = (ms: number): number => Math.min(maxWithin, Math.ceil(ms * patience + 1_000))

type Recorder = { readonly add: (line: RecordedLine) => void; readonly at: () => number }

async function open(
  { way, called, allowedHosts }: RecordWish,
  { add, at }: Recorder,
  closing: AsyncDisposableStack,
): Promise<LoadLine> {
  const allowed = await allowedHostsOf(allowedHosts)
  if (way === 'sip') {
    if (!called.sip) throw new Error('nobody said where calls by telephone go: --sip')
    const lines = await openSipLines(called.sip, allowed)
    closing.defer(() => lines.close())
    const told: Told = (by, message) =>
      add({
        type: 'sip',
        at: at(),
        by,
        message: typeof message === 'string' ? message : writeMessage(message).toString(),
      })
    return lines.open(told)
  }
  if (!called.web) throw new Error('nobody said where calls by web go: --url and --key')
  return openWebLine({
    web: called.web,
    allowed,
    // The pair of side and message is what the socket carried.
    told: (by, message) => add({ type: 'signal', at: at(), by, message } as RecordedLine),
  })
}

function recorded(line: LoadLine, { add, at }: Recorder): LoadLine {
  const packet = (by: 'caller' | 'service', given: RtpPacket): void =>
    add({ type: 'packet', at: at(), by, packet: { ...given, payload: new Uint8Array(given.payload) } })
  return {
    ...line,
    onPacket: (listener) =>
      line.onPacket((given) => {
        packet('service', given)
        listener(given)
      }),
    send(given) {
      packet('caller', given)
      line.send(given)
    },
  }
}
