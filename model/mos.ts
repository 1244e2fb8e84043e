/**
 * Owns the estimate of how speech sounded after what its packets went through: the E-model of ITU-T G.107 with its default values, of which
 * codec, loss and delay are left: R = Ro − Is − Id − Ie,eff, and Annex B's mean opinion score on top. It compares calls; it measures none.
 *
 * A codec is rated on the scale of its own bandwidth: narrowband (G.107), wideband (G.107.1) or fullband (G.107.2). Scores of one scale are
 * comparable, scores of two are not.
 */
import type { NegotiatedAudio } from './rtp-transport.ts'

export type Heard = {
  readonly codec: NegotiatedAudio['codec']
  /** Part of the packets that were not heard, 0 to 1. */
  readonly loss: number
  /** From mouth to ear, ms. */
  readonly delayMs: number
}

/** Of a line without delay, loss and codec: Ro − Is, and where the scale ends. */
const narrowband = { best: 93.2, top: 100 }
const wideband = { best: 129, top: 129 }
const fullband = { best: 148, top: 148 }

type Rating = {
  readonly scale: { readonly best: number; readonly top: number }
  /** Impairment of the codec without loss. */
  readonly ie: number
  /** Robustness against random loss that is concealed. */
  readonly bpl: number
}

/** G.113, Appendix I: with the concealment of G.711's own Appendix I. */
const g711: Rating = { scale: narrowband, ie: 0, bpl: 25.1 }

const ratings: Readonly<Record<Heard['codec'], Rating>> = {
  pcmu: g711,
  pcma: g711,
  /** G.113, Appendix IV, 64 kbit/s. It is a waveform codec, concealed as G.711 is, and taken to be as robust. */
  g722: { scale: wideband, ie: 13, bpl: g711.bpl },
  /** No value of ITU-T: M. Alahmadi, Opus Codec Quality Evaluation (2021), 25 kbit/s with a variable rate. Forward error correction is not counted. */
  opus: { scale: fullband, ie: 20.2, bpl: 11.3 },
}

/** 1 to 4.5. */
export function mosOf({ codec, loss, delayMs }: Heard): number {
  const { scale, ie, bpl } = ratings[codec]
  const lossPercent = 100 * Math.min(1, Math.max(0, loss))
  // G.107, 7.5, for losses that are independent of each other (BurstR = 1).
  const equipment = ie + ((95 - ie) * lossPercent) / (lossPercent + bpl)
  return opinionOf(((scale.best - delayImpairmentOf(delayMs) - equipment) * 100) / scale.top)
}

/** Of a line without echo: Cole and Rosenbluth, Voice over IP Performance Monitoring (2001), for G.107, 7.4. */
function delayImpairmentOf(delayMs: number): number {
  const delay = Math.max(0, delayMs)
  return 0.024 * delay + 0.11 * Math.max(0, delay - 177.3)
}

/** G.107, Annex B. Just above 0 the polynomial goes below the worst score there is. */
export function opinionOf(r: number): number {
  if (r <= 0) return 1
  if (r >= 100) return 4.5
  return Math.max(1, 1 + 0.035 * r + 7e-6 * r * (r - 60) * (100 - r))
}
