/** Owns our offer of sound for a phone call. RFC 3264 §5. */
import type { LocalMedia } from '../../media/rtp/media-session.ts'
import { agreedFormats, offeredFormats } from './audio-formats.ts'
import { offeredTag, writeCrypto } from './crypto-lines.ts'
import { writeAudio, writeDescription } from './write-description.ts'

/** One audio section: RTP/SAVP with our keys where encryption is required, else RTP/AVP. */
export function createOffer(local: LocalMedia): string {
  const { agreed } = local
  const { payloadTypes, lines } = agreed ? agreedFormats(agreed) : offeredFormats(local.codecs)
  const isSecure = local.encryption === 'required'
  const section = writeAudio(local, {
    protocol: isSecure ? 'RTP/SAVP' : 'RTP/AVP',
    payloadTypes,
    formatLines: lines,
    cryptoLines: isSecure ? local.keys.map((key, index) => writeCrypto(offeredTag(index), key)) : [],
    packetMs: agreed?.packetMs ?? 20,
    direction: local.direction,
    rtcpMux: true,
  })
  return writeDescription(local, section)
}
