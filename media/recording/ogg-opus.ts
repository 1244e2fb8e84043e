/**
 * Owns the compressed form of a recording: Opus in Ogg (RFC 7845), one channel or two as the recording has, the agent left. The encoder runs in
 * WebAssembly: the native one shares a buffer between threads.
 */
import { createOpusWasm, opusRequest, opusSignalVoice, type OpusWasm } from '../codecs/opus-wasm.ts'
import { oggPageOf } from './ogg.ts'
import { recordingRateHz } from './track.ts'

export type OggOpusWriter = {
  /** Samples of a recording, all channels side by side, in pieces of any length. */
  readonly add: (samples: Int16Array) => void
  /** Writes what is left. Nothing after it. */
  readonly end: () => void
}

/** 20 ms of the recording, and of the clock that Opus always counts by. */
const frameSamples = recordingRateHz / 50
const clockRateHz = 48_000
const frameTicks = clockRateHz / 50
/** What libopus looks ahead: 6.5 ms. The decoder leaves as much out at the beginning (RFC 7845 §4.2). */
const preSkip = 312
/** One second. */
const packetsPerPage = 50
/** Bits a second, a tenth of the WAV: below what makes libopus leave its mode for speech. */
const bitRates = { 1: 24_000, 2: 40_000 } as const
/** As browsers hear it: what more of it buys is hardly heard (docs/design/media.md "Recording"). */
const complexity = 1
/** libopus, opus_defines.h. */
const opusAudio = 2049

/** `write` gets pages in their order. `serial`: any number of 32 bits. */
export function createOggOpusWriter(
  channels: 1 | 2,
  serial: number,
  write: (page: Uint8Array) => void,
  opus: OpusWasm = createOpusWasm(),
): OggOpusWriter {
  const encoder = openEncoder(opus, channels)
  const frame = new Int16Array(frameSamples * channels)
  let filled = 0
  let samples = 0
  let encoded = 0
  let sequence = 0
  let packets: Uint8Array[] = []

  const writePage = (granule: number, kind: { readonly isFirst?: boolean; readonly isLast?: boolean } = {}) => {
    write(oggPageOf({ serial, sequence: sequence++, granule, packets, ...kind }))
    packets = []
  }
  const encode = () => {
    // The page before is written when it is known that it is not the last one.
    if (packets.length === packetsPerPage) writePage(encoded * frameTicks)
    packets.push(opus.encode(encoder, frame, channels))
    encoded++
    filled = 0
  }
  packets = [opusHeadOf(channels)]
  writePage(0, { isFirst: true })
  packets = [opusTags]
  writePage(0)
  return {
    add(given) {
      samples += given.length / channels
      for (let at = 0; at < given.length;) {
        const taken = given.subarray(at, at + frame.length - filled)
        frame.set(taken, filled)
        at += taken.length
        filled += taken.length
        if (filled === frame.length) encode()
      }
    },
    end() {
      const length = preSkip + (samples * clockRateHz) / recordingRateHz
      while (encoded * frameTicks < length) {
        frame.fill(0, filled)
        encode()
      }
      // Less than its packets hold: the rest is not played (RFC 7845 §4.4).
      writePage(length, { isLast: true })
      opus.free(encoder)
    },
  }
}

function openEncoder(opus: OpusWasm, channels: 1 | 2): number {
  const encoder = opus.openEncoder(recordingRateHz, channels)
  // The one for speech would take low sounds away.
  opus.control(encoder, opusRequest.setApplication, opusAudio)
  opus.control(encoder, opusRequest.setBitrate, bitRates[channels])
  opus.control(encoder, opusRequest.setComplexity, complexity)
  opus.control(encoder, opusRequest.setSignal, opusSignalVoice)
  return encoder
}

/** RFC 7845 §5.1: version 1, channel mapping family 0. */
function opusHeadOf(channels: 1 | 2): Uint8Array {
  const head = Buffer.alloc(19)
  head.write('OpusHead', 0, 'latin1')
  head.writeUInt8(1, 8)
  head.writeUInt8(channels, 9)
  head.writeUInt16LE(preSkip, 10)
  head.writeUInt32LE(recordingRateHz, 12)
  return head
}

/** RFC 7845 §5.2: who wrote it, and no comments. */
const opusTags: Uint8Array = Buffer.concat([
  Buffer.from('OpusTags', 'latin1'),
  Buffer.from([6, 0, 0, 0]),
  Buffer.from('parley', 'latin1'),
  Buffer.alloc(4),
])
