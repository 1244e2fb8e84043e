/**
 * Owns the sound of a recording before it is written: two tracks on one line of time, each at the rate of its sound, with a window in which sound
 * can still be placed. What nobody filled is silence. 16 kHz come out: sound of 8 kHz is doubled as it is taken, the sum of both sides once where
 * they are mixed, out of what lies before and behind it, so that it is not delayed. Pure.
 */
import { saturated } from '../pcm/saturated.ts'
import type { RecordingMode } from '../../model/leg.ts'
import { createDoubling, createTrack, pieceLength, recordingRateHz, type Track } from './track.ts'

export type Timeline = {
  /** `position` in samples of 16 kHz since the beginning; what lies before the edge or beyond the window is left out. */
  readonly place: (name: 'agent' | 'caller', position: number, samples: Int16Array, rateHz?: number) => void
  /** Of what was taken so far: nothing can be placed before here. */
  readonly edge: () => number
  /**
   * Moves the edge on by `count` samples, an even number but for the last time, and gives what lay there, piece by piece: mono when mixed, else
   * interleaved. Each is valid during the call only.
   */
  readonly take: (count: number) => void
}

export function createTimeline(mode: RecordingMode, taken: (samples: Int16Array) => void): Timeline {
  const doubling = createDoubling()
  const tracks = { agent: createTrack(doubling), caller: createTrack(doubling) }
  const channels = mode === 'split' ? 2 : 1
  const out = new Int16Array(pieceLength * channels)
  const agent = new Int16Array(pieceLength)
  const caller = new Int16Array(pieceLength)
  let edge = 0

  const widened = (track: Track, out: Int16Array): void => {
    if (track.isWide()) track.copyTo(out, edge)
    else doubling.make(out, edge, track.addTo)
  }
  const addBoth = (line: Float64Array, at: number): void => {
    tracks.agent.addTo(line, at)
    tracks.caller.addTo(line, at)
    for (let i = 0; i < line.length; i++) line[i] = saturated(line[i]!)
  }
  const mix = (): void => {
    if (!tracks.agent.isWide() && !tracks.caller.isWide()) return doubling.make(out, edge, addBoth)
    widened(tracks.agent, agent)
    widened(tracks.caller, caller)
    for (let i = 0; i < out.length; i++) out[i] = saturated(agent[i]! + caller[i]!)
  }
  const split = (): void => {
    widened(tracks.agent, agent)
    widened(tracks.caller, caller)
    for (let i = 0; i < pieceLength; i++) {
      out[2 * i] = agent[i]!
      out[2 * i + 1] = caller[i]!
    }
  }
  const join = mode === 'split' ? split : mix

  return {
    place: (name, position, samples, rateHz = recordingRateHz) => tracks[name].place(edge, position, samples, rateHz),
    edge: () => edge,
    take(count) {
      for (let left = count; left > 0; left -= pieceLength) {
        const length = Math.min(pieceLength, left)
        join()
        taken(length === pieceLength ? out : out.subarray(0, length * channels))
        edge += length
        tracks.agent.clearUntil(edge)
        tracks.caller.clearUntil(edge)
      }
    },
  }
}
