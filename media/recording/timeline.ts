/**
 * Owns the sound of a recording before it is written: two tracks of 16 kHz on one line of time, with a window of two seconds in which
 * sound can still be placed. What nobody filled is silence. Pure.
 */
import type { RecordingMode } from '../../model/leg.ts'

export const recordingRateHz = 16_000

export type Timeline = {
  /** `position` in samples since the beginning; what lies before the edge or beyond the window is left out. */
  readonly place: (track: 'agent' | 'caller', position: number, samples: Int16Array) => void
  /** The samples that were taken so far: nothing can be placed before here. */
  readonly edge: () => number
  /** Moves the edge on by `count` samples (at most the window) and gives what lay there: mono when mixed, else interleaved. */
  readonly take: (count: number) => Int16Array
}

/** 2.048 s. */
const timelineWindow = 32_768

export function createTimeline(mode: RecordingMode): Timeline {
  const tracks = { agent: new Int16Array(timelineWindow), caller: new Int16Array(timelineWindow) }
  let edge = 0

  return {
    place(name, position, samples) {
      const track = tracks[name]
      const from = Math.max(0, edge - position)
      const to = Math.min(samples.length, edge + timelineWindow - position)
      for (let i = from; i < to; i++) track[(position + i) % timelineWindow] = samples[i]!
    },
    edge: () => edge,
    take(count) {
      const out = new Int16Array(mode === 'split' ? count * 2 : count)
      for (let i = 0; i < count; i++) {
        const at = (edge + i) % timelineWindow
        const agent = tracks.agent[at]!
        const caller = tracks.caller[at]!
        tracks.agent[at] = tracks.caller[at] = 0
        if (mode === 'mixed') out[i] = clipped(agent + caller)
        else out[i * 2] = agent
        if (mode === 'split') out[i * 2 + 1] = caller
      }
      edge += count
      return out
    },
  }
}

const clipped = (sample: number): number => Math.max(-32768, Math.min(32767, sample))
