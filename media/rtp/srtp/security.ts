/** Owns the protection of one call's media as it stands: none, or SRTP under the keys that were agreed on last. */
import type { MediaSession, SrtpKey } from '../media-session.ts'
import { createSrtcpReceiving, createSrtcpSending, type SrtcpReceiving, type SrtcpSending } from './srtcp.ts'
import { isSameKey } from './srtp-keys.ts'
import { createSrtpReceiving, createSrtpSending, type SrtpReceiving, type SrtpSending } from './srtp.ts'

export type Security = {
  use(srtp: MediaSession['srtp']): void
  /** What arrives is proved to be the peer's. */
  isOn(): boolean
  /** To be left free behind a packet for `protect`. */
  tagBytes(): number
  /** In place. False: it must not be sent. */
  protect(packetAndRoom: Buffer): boolean
  protectRtcp(compound: Buffer): Buffer
  /** In place; null: not authentic, or seen before. */
  unprotect(datagram: Buffer): Buffer | null
  unprotectRtcp(datagram: Buffer): Buffer | null
}

type Sending = { readonly key: SrtpKey; readonly rtp: SrtpSending; readonly rtcp: SrtcpSending }
type Receiving = { readonly key: SrtpKey; readonly rtp: SrtpReceiving; readonly rtcp: SrtcpReceiving }

/** Ours are made once per call and suite; more are none of this service. */
const maxKeys = 8

/** A key that comes again goes on where it was: its counters must neither repeat nor be forgotten. */
export function createSecurity(): Security {
  const sendings: Sending[] = []
  let sending: Sending | null = null
  let receiving: Receiving | null = null
  let isOn = false

  function sendWith(key: SrtpKey): Sending {
    const known = sendings.find((one) => isSameKey(one.key, key))
    if (known) return known
    if (sendings.length >= maxKeys) sendings.shift()
    const made = sendingWith(key)
    sendings.push(made)
    return made
  }

  function use(srtp: MediaSession['srtp']): void {
    isOn = srtp !== null
    if (srtp === null) return
    sending = sendWith(srtp.ours)
    if (!receiving || !isSameKey(receiving.key, srtp.theirs)) receiving = receivingWith(srtp.theirs, receiving)
  }

  return {
    use,
    isOn: () => isOn,
    tagBytes: () => (isOn && sending ? sending.rtp.tagBytes : 0),
    protect: (packetAndRoom) => (isOn && sending ? sending.rtp.protect(packetAndRoom) : true),
    protectRtcp: (compound) => (isOn && sending ? sending.rtcp(compound) : compound),
    unprotect: (datagram) => (isOn && receiving ? receiving.rtp.unprotect(datagram) : datagram),
    unprotectRtcp: (datagram) => (isOn && receiving ? receiving.rtcp(datagram) : datagram),
  }
}

const sendingWith = (key: SrtpKey): Sending => ({
  key,
  rtp: createSrtpSending(key),
  rtcp: createSrtcpSending(key),
})

const receivingWith = (key: SrtpKey, before: Receiving | null): Receiving => ({
  key,
  rtp: createSrtpReceiving(key, before?.rtp),
  rtcp: createSrtcpReceiving(key),
})
