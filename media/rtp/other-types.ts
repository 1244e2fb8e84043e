/**
 * Owns packets under a payload type that was not agreed on and is meant all the same, made into ones that were. Peers that answer with both
 * laws of G.711 send either of them (RFC 3264 §7), and one that answers our key presses under another number still may send them under the
 * number of our offer (§5.1). Pure.
 */
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import { lawOfEncoding } from '../codecs/g711.ts'
import { offeredEvents } from './media-session.ts'

/**
 * Gateways say by these types that the caller is silent, whether they were agreed on or not: 13 of RFC 3389, and 19 of the drafts before it. They count in
 * the sequence of the sound, and their sender is there.
 */
const staticNoise: readonly number[] = [13, 19]

export const isComfortNoise = (
  payloadType: number,
  { comfortNoisePayloadType, clockRateHz }: Pick<NegotiatedAudio, 'comfortNoisePayloadType' | 'clockRateHz'>,
): boolean =>
  comfortNoisePayloadType === null
    ? clockRateHz === 8000 && staticNoise.includes(payloadType)
    : payloadType === comfortNoisePayloadType

export type OtherTypes = {
  /** The same packet where there is nothing to be made of it. */
  agreed(packet: RtpPacket, audio: NegotiatedAudio): RtpPacket
}

/** RFC 3551 §6. */
const staticTypes = { pcmu: 0, pcma: 8 } as const

export function createOtherTypes(): OtherTypes {
  let samples = new Int16Array(0)

  function inLaw(payload: Uint8Array, from: 'pcmu' | 'pcma', to: 'pcmu' | 'pcma'): Uint8Array {
    if (samples.length < payload.length) samples = new Int16Array(payload.length)
    const part = samples.subarray(0, payload.length)
    lawOfEncoding(from).decode(payload, part)
    const out = new Uint8Array(payload.length)
    lawOfEncoding(to).encode(part, out)
    return out
  }

  return {
    agreed(packet, audio) {
      const { payloadType } = packet
      const { codec, telephoneEventPayloadType: events, comfortNoisePayloadType: noise } = audio
      if (payloadType === audio.payloadType || payloadType === events || payloadType === noise) return packet
      if (events !== null && payloadType === offeredEvents[audio.clockRateHz]) return { ...packet, payloadType: events }
      if (codec !== 'pcmu' && codec !== 'pcma') return packet
      const other = codec === 'pcmu' ? 'pcma' : 'pcmu'
      if (payloadType !== staticTypes[other]) return packet
      return { ...packet, payloadType: audio.payloadType, payload: inLaw(packet.payload, other, codec) }
    },
  }
}
