/** Owns writing a session description: its lines in the order of RFC 8866 §5. */
import { connectionAt } from '../../net/sdp.ts'
import type { LocalMedia, MediaDirection } from '../../media/rtp/media-session.ts'

export type AudioSection = {
  readonly protocol: string
  readonly payloadTypes: readonly number[]
  /** rtpmap and fmtp. */
  readonly formatLines: readonly string[]
  readonly cryptoLines: readonly string[]
  readonly packetMs: number
  readonly direction: MediaDirection
  readonly rtcpMux: boolean
}

/** `timing`: of the offer, in an answer (RFC 3264 §6). */
export const writeDescription = (local: LocalMedia, sections: readonly string[], timing = '0 0'): string =>
  [
    'v=0',
    `o=- ${local.sessionId} ${local.version} ${connectionAt(local.originAddress ?? local.address)}`,
    's=-',
    `c=${connectionAt(local.address)}`,
    `t=${timing}`,
    ...sections,
    '',
  ].join('\r\n')

export const writeAudio = (local: LocalMedia, audio: AudioSection): string[] => [
  `m=audio ${local.port} ${audio.protocol} ${audio.payloadTypes.join(' ')}`,
  ...audio.formatLines,
  ...audio.cryptoLines,
  `a=ptime:${audio.packetMs}`,
  `a=${audio.direction}`,
  // RFC 5761 §5.1.1: the port for the case that the peer does not share one; RFC 3605: said where it is not the next one.
  ...(audio.rtcpMux ? ['a=rtcp-mux'] : []),
  ...(local.rtcpPort === local.port + 1 ? [] : [`a=rtcp:${local.rtcpPort}`]),
]
