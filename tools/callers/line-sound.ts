/** Owns the sound of a caller's line: frames of 20 ms, 16-bit at 16 kHz, into packets and out of them, in whatever codec was agreed on. */
import { bytesOf, frameMs, samplesOf, samplesPerFrame } from '../../model/frame.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import type { OpusLibrary } from '../../media/codecs/opus.ts'
import { downStages, upStages } from '../../media/leg/stages.ts'
import { chain, createSound, renew } from '../../media/leg/stages/stage.ts'

const format = { encoding: 'pcm16', rateHz: 16000 } as const
export const frameSamples = samplesPerFrame(format)

/** A line that is up: WebCaller and PhoneLine are such. */
export type Line = {
  /** The one listener; a later one takes its place. */
  onPacket(listener: (packet: RtpPacket) => void): void
  send(packet: RtpPacket): void
}

export type LineSound = { readonly line: Line; readonly audio: NegotiatedAudio; readonly opus: OpusLibrary }

/** One packet for each frame, speech or silence, as a browser with an open microphone sends. */
export function createMicrophone({ line, audio, opus }: LineSound) {
  // A caller's voice is coded like an agent's: the other way round is only its place in a call.
  const stages = downStages({ audio, opus, speaks: format, recording: null, isWaiting: () => false })
  const sound = createSound()
  const step = (audio.clockRateHz * frameMs) / 1000
  let sequenceNumber = 0
  const packet = (part: Pick<RtpPacket, 'payloadType' | 'marker' | 'timestamp' | 'payload'>): void => {
    line.send({ ...part, sequenceNumber: sequenceNumber & 0xffff })
    sequenceNumber++
  }
  const send = chain(stages.list, ({ payload, timestamp }) =>
    packet({ payloadType: audio.payloadType, marker: sequenceNumber === 0, timestamp, payload }),
  )
  let frames = 0
  const timestamp = (): number => (frames++ * step) >>> 0
  return {
    speak(frame: Int16Array): void {
      sound.timestamp = timestamp()
      send(renew(sound, 'sound', bytesOf(frame)))
    },
    /** Another packet in the place of a frame: a piece of a key. */
    key: (write: (timestamp: number) => Omit<Parameters<typeof packet>[0], 'timestamp'>, begunAt: number | null) => {
      const now = timestamp()
      const at = begunAt ?? now
      packet({ ...write(at), timestamp: at })
      return at
    },
    close: stages.close,
  }
}

/** `heard` gets what each packet says; what it holds is valid during the call. */
export function createEarpiece(
  { line, audio, opus }: LineSound,
  heard: (samples: Int16Array) => void,
): { close(): void } {
  const stages = upStages({ audio, opus, hears: format, recording: null })
  const sound = createSound()
  const hear = chain(stages.list, ({ kind, payload }) => {
    if (kind === 'sound') heard(samplesOf(payload))
  })
  line.onPacket(({ payloadType, payload }) => {
    if (payloadType === audio.payloadType) hear(renew(sound, 'sound', payload))
  })
  return {
    close() {
      line.onPacket(() => undefined)
      stages.close()
    },
  }
}

/** Well above what silence decodes to, well below quiet speech. */
export const loud = 300
