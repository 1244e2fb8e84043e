/** Owns that somebody listens at their own sample rate: a tap with a change of rate, which changes nothing of what passes. */
import { createResampler } from '../../pcm/resample.ts'
import { tap } from './tap.ts'
import type { Stage } from './stage.ts'

/** `isOn`: asked for each piece. Samples are valid during the call only. */
export function listen(
  { fromHz, toHz }: { readonly fromHz: number; readonly toHz: number },
  { isOn, take }: { isOn(): boolean; take(samples: Int16Array): void },
): Stage {
  const resampler = createResampler(fromHz, toHz)
  return tap((samples) => {
    if (isOn()) take(resampler?.convert(samples) ?? samples)
  })
}
