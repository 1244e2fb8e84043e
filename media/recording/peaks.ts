/** Owns how the outline of a waveform comes from its samples. Pure. */
import { peaksPerSecond } from '../../model/recording-peaks.ts'

export type PeakMeter = {
  /** Whole samples of all channels, side by side. */
  readonly add: (samples: Int16Array) => void
  /** 0 to 32768, all channels of a tenth side by side; of a tenth that is not over too. */
  readonly values: () => readonly number[]
}

export function createPeakMeter(rateHz: number, channels: 1 | 2): PeakMeter {
  const perTenth = rateHz / peaksPerSecond
  const values: number[] = []
  const loudest = [0, 0]
  let counted = 0
  const close = () => {
    for (let channel = 0; channel < channels; channel++) values.push(loudest[channel]!)
    loudest.fill(0)
    counted = 0
  }
  return {
    add(samples) {
      for (let at = 0; at + channels <= samples.length; at += channels) {
        for (let channel = 0; channel < channels; channel++)
          loudest[channel] = Math.max(loudest[channel]!, Math.abs(samples[at + channel]!))
        if (++counted === perTenth) close()
      }
    },
    values() {
      if (counted > 0) close()
      return values
    },
  }
}
