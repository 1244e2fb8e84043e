/** Owns which part of a call the time axis shows: the whole of it, or a part that is looked at closer, which follows what is heard. */
import { useCallback, useEffect, useMemo, useState } from 'preact/hooks'

/** @typedef {import('./waveform.js').Range} Range */

/** Seconds: nobody looks closer. */
const closest = 1

/**
 * As wide as it is where that fits into the call; null: that is all of it.
 * @param {Range} range
 * @param {number} length
 * @returns {Range | null}
 */
function within({ from, to }, length) {
  const width = Math.max(closest, to - from)
  if (width >= length - 0.001) return null
  const start = Math.min(Math.max(0, from), length - width)
  return { from: start, to: start + width }
}

/**
 * @param {number} length seconds
 * @param {Pick<import('./player.js').Player, 'time' | 'isPlaying'>} player
 */
export function useAxisRange(length, { time, isPlaying }) {
  /** Null: all of it, as long as it becomes. */
  const [part, setPart] = useState(/** @type {Range | null} */ (null))
  const range = useMemo(() => part ?? { from: 0, to: length }, [part, length])
  const setRange = useCallback(
    (/** @type {Range | null} */ next) => setPart(next === null ? null : within(next, length)),
    [length],
  )
  const width = range.to - range.from
  useEffect(() => {
    if (isPlaying && part !== null && (time < part.from || time > part.to))
      setRange({ from: time - width / 20, to: time + (width * 19) / 20 })
  }, [time, isPlaying])
  /** Around what is heard, where that can be seen. @param {number} factor */
  const zoom = (factor) => {
    const center = time > range.from && time < range.to ? time : range.from + width / 2
    setRange({ from: center - (center - range.from) * factor, to: center + (range.to - center) * factor })
  }
  /** @param {1 | -1} way */
  const move = (way) => setRange({ from: range.from + (way * width) / 2, to: range.to + (way * width) / 2 })
  return { range, setRange, zoom, move, isClose: part !== null }
}
