/**
 * Owns what a leg parts with when it has kept as much of its caller as it may: the inside of pauses first, then the oldest sound. Where something is left
 * out a gap stands, so that nobody takes it for lost on the way. Pure.
 */
import { frameMs, type AudioFormat } from '../../model/frame.ts'
import type { KeyEvent } from '../../model/leg.ts'
import { readerOf } from '../codecs/frame-bytes.ts'

/** Without bytes it is a gap: what came before it, from the entry before it on, is left out. */
export type KeptSound = { readonly seq: number; readonly timestamp: number; readonly payload: Uint8Array }
export type KeptKey = { readonly seq: number; readonly event: KeyEvent; readonly isHidden: boolean }
export type Kept = KeptSound | KeptKey

export const isKey = (entry: Kept): entry is KeptKey => 'event' in entry
export const isGap = (entry: Kept): boolean => !isKey(entry) && entry.payload.length === 0

const keyBytes = 64
export const bytesOf = (entry: Kept): number => {
  if (!isKey(entry)) return entry.payload.length
  return keyBytes + (entry.event.type === 'typed' ? 2 * entry.event.text.length : 0)
}
export const bytesOfAll = (kept: readonly Kept[]): number => kept.reduce((sum, entry) => sum + bytesOf(entry), 0)

/** A pause stays one for who listens for the end of a turn. */
const behindSpeech = 600 / frameMs
const beforeSpeech = 300 / frameMs
/** As in speech-runs.ts: about -46 dB of full scale, and so many times the noise of the line, which one frame in five is not above. */
const faintest = 160
const aboveNoise = 3
const mostNoise = 400

/** At most so many bytes of them. Keys are the last to go. */
export function partedWith(kept: readonly Kept[], format: AudioFormat, most: number): Kept[] {
  const spoken = without(kept, pausesOf(kept, format))
  let over = bytesOfAll(spoken) - most
  const leaving = new Set<Kept>()
  const leave = (entry: Kept): void => {
    if (over <= 0) return
    over -= bytesOf(entry)
    leaving.add(entry)
  }
  spoken.filter((entry) => !isKey(entry)).forEach(leave)
  spoken.filter(isKey).forEach(leave)
  return without(spoken, leaving)
}

/** What leaves behind one another leaves one gap, in the place of its last. */
function without(kept: readonly Kept[], leaving: ReadonlySet<Kept>): Kept[] {
  const stays: Kept[] = []
  for (const entry of kept) {
    if (!leaving.has(entry) && !isGap(entry)) {
      stays.push(entry)
      continue
    }
    const last = stays.at(-1)
    if (last && isGap(last)) stays.pop()
    stays.push({ seq: entry.seq, timestamp: 'timestamp' in entry ? entry.timestamp : 0, payload: nothing })
  }
  return stays
}

const nothing = new Uint8Array(0)

function pausesOf(kept: readonly Kept[], format: AudioFormat): ReadonlySet<Kept> {
  const toSamples = readerOf(format)
  const sounds = kept.filter((entry): entry is KeptSound => !isKey(entry) && !isGap(entry))
  const levels = sounds.map(({ payload }) => levelOf(toSamples(payload)))
  const noise = Math.min(mostNoise, levels.toSorted((one, other) => one - other)[Math.floor(levels.length / 5)] ?? 0)
  const threshold = Math.max(faintest, aboveNoise * noise)
  let loudAt = -Infinity
  const since = levels.map((level, at) => at - (level > threshold ? (loudAt = at) : loudAt))
  // What comes next may be a word.
  loudAt = levels.length
  const until = levels.map(() => 0)
  for (let at = levels.length - 1; at >= 0; at--) until[at] = (levels[at]! > threshold ? (loudAt = at) : loudAt) - at
  return new Set(sounds.filter((_, at) => since[at]! > behindSpeech && until[at]! > beforeSpeech))
}

function levelOf(samples: Int16Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  return Math.sqrt(sum / Math.max(1, samples.length))
}
