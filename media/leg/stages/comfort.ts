/**
 * Owns what a caller hears while nobody can speak to them: soft noise for as long as the actor is gone, where a pause is silence otherwise, so that the line
 * does not sound dead. What was queued before is played; whoever takes the call over speaks as soon as there is something to say.
 */
import { samplesPerFrame, type AudioFormat } from '../../../model/frame.ts'
import { comfortLevel, createNoise } from '../../pcm/comfort-noise.ts'
import { tailTicks } from './silence.ts'
import type { Stage } from './stage.ts'

/** Asked in each pause. */
export const comfort =
  (speaks: AudioFormat, isAlone: () => boolean): Stage =>
  (next) => {
    const { make } = createNoise()
    let tail = 0
    return (sound) => {
      if (sound.kind === 'pause' && isAlone()) {
        tail = tailTicks
        sound.kind = 'sound'
        sound.samples = make(samplesPerFrame(speaks), comfortLevel)
      } else if (sound.kind === 'pause' && tail > 0) {
        // A pause begins anew behind it.
        sound.silentTicks = tailTicks - --tail
      }
      next(sound)
    }
  }
