/**
 * Owns what comes in from the wire: puts packets in order, takes key presses out and passes the caller's voice on to whoever hears
 * it at the moment.
 */
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import type { CallerSound } from './caller-sound.ts'
import { createDtmfReceiver } from './dtmf-receiver.ts'
import { createJitterBuffer, type JitterBufferStats, type Released } from './jitter-buffer.ts'
import type { UpLine } from './up-line.ts'

/** What is heard is decoded by `sound` and goes up on `line`. */
type Hearer = { readonly sound: CallerSound; readonly line: UpLine }

export type Receiving = {
  readonly packet: (packet: RtpPacket, now: number) => void
  readonly tick: (now: number) => void
  /** Null: nobody hears. Key presses are told all the same. */
  readonly use: (hearer: Hearer | null) => void
  readonly stats: () => JitterBufferStats
}

export function createReceiving(audio: NegotiatedAudio, dtmf: (digit: string) => void): Receiving {
  const buffer = createJitterBuffer({ clockRateHz: audio.clockRateHz, soundPayloadType: audio.payloadType })
  const keys = createDtmfReceiver()
  let hearer: Hearer | null = null

  const deliver = (released: Released, now: number) => {
    if (!('packet' in released)) return hearer && deliverLoss(hearer, released.next, now)
    const { packet } = released
    if (packet.payloadType === audio.payloadType) return hearer && deliverSound(hearer, packet, now)
    if (packet.payloadType !== audio.telephoneEventPayloadType) return
    const digit = keys.receive(packet)
    if (digit !== null) dtmf(digit)
  }

  const drain = (now: number) => {
    for (let released = buffer.due(now); released !== null; released = buffer.due(now)) deliver(released, now)
  }

  return {
    packet(packet, now) {
      buffer.push(packet, now)
      drain(now)
    },
    tick(now) {
      drain(now)
      hearer?.line.tick(now)
    },
    use(newHearer) {
      hearer?.sound.close()
      hearer = newHearer
    },
    stats: buffer.stats,
  }
}

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
