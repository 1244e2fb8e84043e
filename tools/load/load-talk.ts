/**
 * Owns how a synthetic caller talks: it listens until the agent has spoken and fallen silent, says its next phrase, and waits for the answer. What it
 * measures is the time from its last packet of speech to the first packet of the agent that can be heard.
 */
import type { Ticker } from '../../media/ticker/ticker.ts'
import { frameMs } from '../../model/frame.ts'
import type { CallerSound } from './caller-sound.ts'
import { createLineMeter, type LineQuality } from './line-meter.ts'
import type { LoadLine } from './load-line.ts'
import type { LoadTally } from './load-tally.ts'

/** Root mean square of 16-bit samples: well above what silence decodes to, well below quiet speech. */
const loud = 300
/** Of the agent, ms: then it is the caller's turn. */
const pauseMs = 700
/** For the first words, and for each answer, ms: a wait that ends here counts with this length, and as an error. */
export const patienceMs = 10_000

export type LoadTalk = {
  /** Nothing is sent any more. What the line was like. */
  stop(): LineQuality
}

type Talking = {
  readonly line: LoadLine
  readonly sound: CallerSound
  readonly ticker: Ticker
  readonly tally: LoadTally
  /** By performance.now: when the call was due. */
  readonly due: number
  readonly now: () => number
}

/** `turn`: until then it listens. */
type Turn =
  | { readonly kind: 'listening'; readonly since: number; readonly heard: boolean }
  | { readonly kind: 'speaking'; readonly phrase: readonly Uint8Array[]; readonly at: number }
  | { readonly kind: 'waiting'; readonly since: number }

export function talk({ line, sound, ticker, tally, due, now }: Talking): LoadTalk {
  const { codec, payloadType, clockRateHz } = line.audio
  const { phrases, silence } = sound.of(codec)
  const listener = sound.listener(codec)
  const meter = createLineMeter(line.audio)
  const step = (clockRateHz * frameMs) / 1000
  const began = now()
  let turn: Turn = { kind: 'listening', since: began, heard: false }
  let [sent, said] = [0, 0]
  let lastLoudAt: number | null = null

  function heardLoud(at: number): void {
    if (lastLoudAt === null) tally.value('firstAudio', at - due)
    lastLoudAt = at
    if (turn.kind === 'waiting') {
      tally.value('turn', at - turn.since)
      tally.count('turns')
    }
    if (turn.kind !== 'speaking') turn = { kind: 'listening', since: at, heard: true }
  }
  line.onPacket((packet) => {
    if (packet.payloadType !== payloadType) return
    const at = now()
    meter.add(packet, at)
    tally.count('packetsReceived')
    if (listener.of(packet.payload) > loud) heardLoud(at)
  })

  /** What it says now; the end of a phrase begins the wait. */
  function nextPayload(at: number): Uint8Array {
    if (turn.kind === 'listening' && turn.heard && at - turn.since > pauseMs && phrases.length > 0)
      turn = { kind: 'speaking', phrase: phrases[said++ % phrases.length] ?? [], at: 0 }
    if (turn.kind !== 'speaking') return silence
    const payload = turn.phrase[turn.at] ?? silence
    turn = turn.at + 1 < turn.phrase.length ? { ...turn, at: turn.at + 1 } : { kind: 'waiting', since: at }
    return payload
  }
  function giveUp(at: number): void {
    if (turn.kind === 'listening' && !turn.heard && at - turn.since > patienceMs) {
      if (lastLoudAt === null) {
        tally.value('firstAudio', at - due)
        tally.error('the agent was not heard')
      }
      turn = { kind: 'listening', since: at, heard: true }
    }
    if (turn.kind === 'waiting' && at - turn.since > patienceMs) {
      tally.value('turn', at - turn.since)
      tally.error('a turn was not answered')
      turn = { kind: 'listening', since: at, heard: true }
    }
  }
  const leave = ticker.join((_due, lateMs) => {
    const at = now()
    tally.count('beats')
    if (lateMs > 10) tally.count('beatsLate')
    giveUp(at)
    const [sequenceNumber, timestamp] = [sent & 0xffff, (sent * step) >>> 0]
    line.send({ payloadType, marker: sent === 0, sequenceNumber, timestamp, payload: nextPayload(at) })
    sent++
    tally.count('packetsSent')
  })
  return {
    stop() {
      leave()
      line.onPacket(() => undefined)
      listener.close()
      return meter.read()
    },
  }
}
