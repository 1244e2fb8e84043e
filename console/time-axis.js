/** Owns the time axis of a call: player, waveforms and what stands below them, all of it or a part that is looked at closer. */
import { h } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import { useAxisRange } from './axis-range.js'
import { lanesOf, lengthOf } from './call-course.js'
import { durationOf } from './format.js'
import { Lanes } from './lanes.js'
import { Failure } from './parts.js'
import { Waveform } from './waveform.js'

/** @typedef {ReturnType<typeof useAxisRange>} AxisRange */

/**
 * @param {{ whole: import('./use-call.js').WholeCall, turns: readonly import('./call-course.js').CourseTurn[], player: import('./player.js').Player }} props
 */
export function TimeAxis({ whole: { call, diagnostics, peaks }, turns, player }) {
  const length = lengthOf(turns, { recorded: peaks && peaks.durationMs / 1000, duration: call.duration, diagnostics })
  const axis = useAxisRange(length, player)
  const lanes = useMemo(() => lanesOf(turns, diagnostics, length), [turns, diagnostics, length])
  const { time, playAt, seek } = player
  const chosen = peaks ? playAt : seek
  useAxisKeys(peaks ? player : null, axis)
  return h('section', { class: 'card axis', 'aria-label': 'Time axis' }, [
    h('div', { class: 'player' }, [
      peaks
        ? h(
            'button',
            {
              type: 'button',
              class: 'play',
              onClick: player.toggle,
              'aria-label': player.isPlaying ? 'Pause' : 'Play',
            },
            player.isPlaying ? '❚❚' : '▶',
          )
        : h(
            'span',
            { class: 'soft' },
            call.status === 'completed'
              ? 'There is no recording to hear'
              : 'The recording comes with the end of the call',
          ),
      h('span', { class: 'clock number', role: 'timer' }, `${durationOf(time)} / ${durationOf(length)}`),
      peaks &&
        h(
          'button',
          {
            type: 'button',
            class: 'quiet small',
            title: 'Speed',
            onClick: () => player.setSpeed(player.speed === 1 ? 1.5 : player.speed === 1.5 ? 2 : 1),
          },
          `${player.speed}×`,
        ),
      h('span', { class: 'legend' }, [
        h('span', { class: 'who agent' }, 'Agent'),
        h('span', { class: 'who user' }, 'Caller'),
      ]),
      h(Looks, { axis }),
    ]),
    h(Failure, { error: player.error }),
    h('div', { class: 'axis-room' }, [
      h(Waveform, { peaks, length, time, range: axis.range, setRange: axis.setRange, playAt: chosen }),
      h(Lanes, { lanes, range: axis.range, playAt: chosen }),
    ]),
  ])
}

/** @param {{ axis: AxisRange }} props */
function Looks({ axis: { range, zoom, move, setRange, isClose } }) {
  const button = (/** @type {string} */ sign, /** @type {string} */ label, /** @type {() => void} */ onClick) =>
    h('button', { type: 'button', class: 'quiet small', 'aria-label': label, title: label, onClick, key: label }, sign)
  return h('span', { class: 'looks', role: 'group', 'aria-label': 'What is looked at' }, [
    isClose && h('span', { class: 'soft number' }, `${durationOf(range.from)} to ${durationOf(range.to)}`),
    isClose && button('‹', 'Look earlier', () => move(-1)),
    isClose && button('›', 'Look later', () => move(1)),
    button('+', 'Look closer', () => zoom(0.5)),
    isClose && button('−', 'Look at more', () => zoom(2)),
    isClose &&
      h('button', { type: 'button', class: 'quiet small', onClick: () => setRange(null), key: 'all' }, 'Whole call'),
  ])
}

/** What takes these keys itself. */
const own = /^(INPUT|TEXTAREA|SELECT|BUTTON|A|SUMMARY)$/

/**
 * Space plays and pauses, arrows go five seconds, + and - look closer and at more, 0 at all of it.
 * @param {import('./player.js').Player | null} player
 * @param {AxisRange} axis
 */
function useAxisKeys(player, { zoom, setRange }) {
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const pressed = (event) => {
      const target = /** @type {HTMLElement} */ (event.target)
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return
      if (event.key === '+') zoom(0.5)
      else if (event.key === '-') zoom(2)
      else if (event.key === '0') setRange(null)
      else if (!player || target.closest('.ladder') !== null || own.test(target.tagName)) return
      else if (event.key === ' ') player.toggle()
      else if (event.key === 'ArrowLeft') player.seek(player.time - 5)
      else if (event.key === 'ArrowRight') player.seek(player.time + 5)
      else return
      event.preventDefault()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [player, zoom, setRange])
}
