/**
 * Owns what a pause of the agent sounds like: soft noise for a peer that takes a pause in packets for a lost call, else silence for 200 ms
 * and then a sign of life every 400 ms. From the last of the silence on Opus says that it is a pause: browsers take one for loss else, and guess.
 */
import { samplesPerFrame, type AudioFormat } from '../../../model/frame.ts'
import type { NegotiatedAudio } from '../../../model/rtp-transport.ts'
import { comfortLevel, createNoise } from '../../pcm/comfort-noise.ts'
import type { Stage } from './stage.ts'

/** Of silence that is sent: what was said ends in it. */
export const tailTicks = 10
const keepAliveTicks = 20

type Options = {
  readonly audio: NegotiatedAudio
  readonly speaks: AudioFormat
  /** Of the codec that carries it. */
  readonly rateHz: number
  /** Some sound waits for the rest of its packet. */
  readonly isWaiting: () => boolean
}

export const silence = ({ audio, ...options }: Options): Stage =>
  audio.silence === 'continuous' ? noise(options) : quiet(options)

/** Sound like any other. */
const noise =
  ({ speaks, rateHz }: Omit<Options, 'audio'>): Stage =>
  (next) => {
    const { make } = createNoise()
    // Of noise over a wider band than the codec carries, a part is lost.
    const level = comfortLevel * Math.sqrt(Math.max(1, speaks.rateHz / rateHz))
    return (sound) => {
      if (sound.kind === 'pause') {
        sound.kind = 'sound'
        sound.samples = make(samplesPerFrame(speaks), level)
      }
      next(sound)
    }
  }

const quiet =
  ({ speaks, isWaiting }: Omit<Options, 'audio'>): Stage =>
  (next) => {
    const samples = new Int16Array(samplesPerFrame(speaks))
    const isDue = (ticks: number) => ticks <= tailTicks || (ticks - tailTicks) % keepAliveTicks === 0
    return (sound) => {
      if (sound.kind !== 'pause') return next(sound)
      if (!isDue(sound.silentTicks) && !isWaiting()) return
      sound.samples = samples
      next(sound)
    }
  }
