/**
 * Owns the recording of one leg: places what both sides were heard to say on a timeline and writes it as a 16 kHz WAV, once a second and 400 ms
 * behind, so that late sound still finds its place. The sizes in the header are brought up to date each time: a file whose writer
 * was killed is a valid WAV that lacks less than the last two seconds (docs/recordings.md).
 */
import { bytesOf } from '../../model/frame.ts'
import type { RecordedParts, RecordingMode } from '../../model/leg.ts'
import type { RecordingWriter } from '../../model/recording-store.ts'
import { createCallerPlacement } from './caller-placement.ts'
import { createTimeline } from './timeline.ts'
import { recordingRateHz } from './track.ts'
import { wavHeaderOf } from './wav.ts'

/** Every `at` is a time of the ticker; sound is copied, and of 16 kHz unless told. */
export type Recording = {
  /** The agent's sound, which is played from `at` on. */
  readonly agent: (samples: Int16Array, at: number, rateHz?: number) => void
  /** The caller's sound with its RTP timestamp, which arrived at `at`. */
  readonly caller: (samples: Int16Array, timestamp: number, at: number, rateHz?: number) => void
  /** What of the sound that comes from here on is written; what is not is silence of the same length. All of it unless told. */
  readonly record: (parts: RecordedParts) => void
  /** The caller's next sound belongs to another stream, of this clock. */
  readonly restartCaller: (clockRateHz: number) => void
  readonly tick: (at: number) => void
  /**
   * Writes what is left; resolves with the recorded milliseconds when all is on disk. A recording whose call ended earlier than was noticed goes
   * up to there: what was written after it stays in the file and is no part of the sound. Idempotent.
   */
  readonly finish: (at: number) => Promise<number>
  /** False: it has gaps, or ends early, because of the disk. */
  readonly isWhole: () => boolean
}

export type RecordingDeps = {
  readonly writer: RecordingWriter
  readonly mode: RecordingMode
  readonly startedAt: number
  /** Of the caller's RTP timestamps. */
  readonly clockRateHz: number
}

const lagMs = 400
/** Each write costs as much, however much it is of. */
const everyMs = 1000
const samplesPerMs = recordingRateHz / 1000
const evenOf = (position: number): number => position - (position % 2)

export function createRecording({ writer, mode, startedAt, clockRateHz }: RecordingDeps): Recording {
  const shape = { rateHz: recordingRateHz, channels: mode === 'split' ? 2 : 1 } as const
  const timeline = createTimeline(mode, (samples) => writer.append(bytesOf(samples)))
  let placement = createCallerPlacement(clockRateHz)
  let finished: Promise<number> | null = null
  let recorded: RecordedParts = 'both'
  /** Behind a pause of the process packets come before the tick: they have their places still. */
  let tickedAt = startedAt

  const positionOf = (at: number) => Math.max(0, Math.round((at - startedAt) * samplesPerMs))
  const headerOf = (samples: number) => wavHeaderOf(shape, samples * shape.channels * 2)

  const writeUntil = (position: number) => {
    if (timeline.edge() === 0) writer.append(headerOf(0))
    timeline.take(Math.max(0, position - timeline.edge()))
  }

  const finishAt = async (at: number) => {
    writeUntil(positionOf(at))
    const length = Math.min(timeline.edge(), positionOf(at))
    writer.overwriteStart(headerOf(length))
    await writer.close()
    return Math.round(length / samplesPerMs)
  }

  return {
    agent(samples, at, rateHz = recordingRateHz) {
      if (finished === null && recorded !== 'none') timeline.place('agent', positionOf(at), samples, rateHz)
    },
    caller(samples, timestamp, at, rateHz = recordingRateHz) {
      if (finished !== null) return
      const length = (samples.length * recordingRateHz) / rateHz
      const oldest = Math.max(timeline.edge(), positionOf(tickedAt - lagMs))
      const position = placement.place(timestamp, length, positionOf(at), oldest)
      if (position !== null && recorded === 'both') timeline.place('caller', position, samples, rateHz)
    },
    record: (parts) => void (recorded = parts),
    restartCaller: (clock) => void (placement = createCallerPlacement(clock)),
    tick(at) {
      tickedAt = at
      // Sound of 8 kHz is taken in whole samples.
      const position = evenOf(positionOf(at - lagMs))
      if (finished !== null || position - timeline.edge() < everyMs * samplesPerMs) return
      writeUntil(position)
      writer.overwriteStart(headerOf(timeline.edge()))
    },
    finish: (at) => (finished ??= finishAt(at)),
    isWhole: () => writer.isWhole?.() ?? true,
  }
}
