/**
 * Owns what comes in from the wire: puts packets in order, takes key presses and comfort noise out and passes the caller's voice on to
 * whoever hears it at the moment.
 */
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import type { CallerSound } from './caller-sound.ts'
import { levelOfComfortNoise } from '../pcm/comfort-noise.ts'
import { createDtmfReceiver } from '../rtp/dtmf-receiver.ts'
import { createJitterBuffer, type JitterBuffer, type JitterBufferStats, type Released } from '../rtp/jitter-buffer.ts'
import type { UpLine } from './up-line.ts'

/** What is heard is decoded by `sound` and goes up on `line`. */
type Hearer = { readonly sound: CallerSound; readonly line: UpLine }

export type Receiving = {
  readonly packet: (packet: RtpPacket, now: number) => void
  readonly tick: (now: number) => void
  /** Null: nobody hears. Key presses are told all the same. */
  readonly use: (hearer: Hearer | null) => void
  /** What comes from here on is another stream, of what was negotiated now. Who hears must be told by `use` if the codec is another. */
  readonly restart: (audio: NegotiatedAudio) => void
  readonly stats: () => JitterBufferStats
}

export function createReceiving(first: NegotiatedAudio, dtmf: (digit: string) => void): Receiving {
  const keys = createDtmfReceiver()
  let audio = first
  let buffer = bufferFor(audio)
  let before: JitterBufferStats = buffer.stats()
  let hearer: Hearer | null = null
  /** Of the noise that stands for the caller's silence; null while there is none. */
  let noiseLevel: number | null = null

  const deliver = (released: Released, now: number) => {
    if (!('packet' in released)) return hearer && deliverLoss(hearer, released.next, now)
    const { packet } = released
    if (packet.payloadType === audio.payloadType) {
      noiseLevel = null
      return hearer && deliverSound(hearer, packet, now)
    }
    if (packet.payloadType === audio.comfortNoisePayloadType) return rest(packet)
    if (packet.payloadType !== audio.telephoneEventPayloadType) return
    const digit = keys.receive(packet)
    if (digit !== null) dtmf(digit)
  }

  const rest = ({ payload }: RtpPacket) => {
    noiseLevel = levelOfComfortNoise(payload)
    hearer?.line.rest()
  }

  const drain = (now: number) => {
    for (let released = buffer.due(now); released !== null; released = buffer.due(now)) deliver(released, now)
  }

  const noiseFor = ({ sound }: Hearer) => {
    const level = noiseLevel
    return level === null ? undefined : () => sound.noise(level)
  }

  return {
    packet(packet, now) {
      buffer.push(packet, now)
      drain(now)
    },
    tick(now) {
      drain(now)
      hearer?.line.tick(now, noiseFor(hearer))
    },
    use(newHearer) {
      hearer?.sound.close()
      hearer = newHearer
    },
    restart(agreed) {
      before = together(before, buffer.stats())
      audio = agreed
      buffer = bufferFor(agreed)
      noiseLevel = null
    },
    stats: () => together(before, buffer.stats()),
  }
}

const bufferFor = ({ clockRateHz, payloadType }: NegotiatedAudio): JitterBuffer =>
  createJitterBuffer({ clockRateHz, soundPayloadType: payloadType })

const together = (before: JitterBufferStats, now: JitterBufferStats): JitterBufferStats => ({
  received: before.received + now.received,
  lost: before.lost + now.lost,
  late: before.late + now.late,
  duplicated: before.duplicated + now.duplicated,
  resynchronised: before.resynchronised + now.resynchronised,
  jitterMs: now.jitterMs,
})

/** A packet that is none counts as lost. */
function deliverSound(hearer: Hearer, packet: RtpPacket, now: number): void {
  const payload = hearer.sound.hear(packet, now)
  if (payload === null) deliverLoss(hearer, null, now)
  else hearer.line.sound(payload, now)
}

function deliverLoss({ sound, line }: Hearer, next: RtpPacket | null, now: number): void {
  const missed = sound.miss(next, now)
  if (missed === null) return
  if (missed.real) line.sound(missed.payload, now)
  else line.filler(missed.payload, now)
}
