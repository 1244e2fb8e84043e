/** Owns that somebody listens at their own sample rate: a tap with a change of rate, which changes nothing of what passes. */
import { createResampler, type Resampler } from '../../pcm/resample.ts'
import { tap } from './tap.ts'
import type { Stage } from './stage.ts'

/** `isOn`: asked for each piece. Samples are valid during the call only. */
export function listen(
  { fromHz, toHz }: { readonly fromHz: number; readonly toHz: number },
  { isOn, take }: { isOn(): boolean; take(samples: Int16Array): void },
): Stage {
  // Made for the first that listens, which hardly a call has.
  let resampler: Resampler | null = null
  return tap((samples) => {
    if (!isOn()) return
    resampler ??= createResampler(fromHz, toHz)
    take(resampler?.convert(samples) ?? samples)
  })
}
