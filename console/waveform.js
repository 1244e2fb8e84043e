/**
 * Owns the two waveforms of a call on its time axis: the agent's upwards, the caller's downwards. Dragging looks closer, a double click at all of it; which
 * part is looked at is the page's, and the same for what stands below.
 */
import { h } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { durationOf } from './format.js'

/** @typedef {{ from: number, to: number }} Range seconds */

const height = 136
const axisHeight = 26
/** Of a call of hours the first ones tell how loud it is. */
const mostLooked = 50_000

/** @param {string} name of a colour of the style sheet, which may be one for light and one for dark */
function colourOf(name) {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

/**
 * As high as the loudest of both, so that a quiet call shows too; from the beginning to the end of the axis.
 * @param {import('./answers').Peaks | null} peaks
 * @param {number} length seconds
 * @returns {uPlot.AlignedData}
 */
function linesOf(peaks, length) {
  const [first = [], second = first] = peaks?.channels ?? []
  if (!peaks || first.length === 0)
    return [
      [0, length],
      [0, 0],
      [0, 0],
    ]
  let loudest = 0.05
  for (const value of [...first.slice(0, mostLooked), ...second.slice(0, mostLooked)])
    if (value > loudest) loudest = value
  const times = first.map((_, index) => index / peaks.peaksPerSecond)
  return [
    [...times, length],
    [...first.map((value) => Math.min(1, value / loudest)), 0],
    [...second.map((value) => -Math.min(1, value / loudest)), 0],
  ]
}

/**
 * @param {HTMLElement} room
 * @param {uPlot.AlignedData} lines
 * @param {number} length
 * @param {(range: Range) => void} chosen by dragging
 */
function draw(room, lines, length, chosen) {
  const soft = colourOf('--soft')
  const line = { stroke: colourOf('--line'), width: 1 }
  /** @param {string} name @returns {uPlot.Series} */
  const series = (name) => ({ stroke: colourOf(name), fill: colourOf(name), width: 1, points: { show: false } })
  return new uPlot(
    {
      width: room.clientWidth,
      height,
      padding: [8, 0, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, dist: 6, setScale: false },
        bind: { dblclick: () => null },
      },
      scales: {
        x: { time: false, range: (_, min, max) => [Math.max(0, min ?? 0), Math.min(length, max ?? length)] },
        y: { range: [-1, 1] },
      },
      axes: [
        {
          stroke: soft,
          grid: line,
          ticks: line,
          size: axisHeight,
          gap: 4,
          values: (_, splits) => splits.map((time) => (time === 0 ? '' : durationOf(time))),
        },
        { show: false },
      ],
      series: [{}, series('--agent'), series('--caller')],
      hooks: {
        setSelect: [
          (plot) => {
            const { left, width } = plot.select
            if (width > 0) chosen({ from: plot.posToVal(left, 'x'), to: plot.posToVal(left + width, 'x') })
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          },
        ],
      },
    },
    lines,
    room,
  )
}

/**
 * @param {{ peaks: import('./answers').Peaks | null, length: number, time: number, range: Range, setRange: (range: Range | null) => void, playAt: (time: number) => void }} props
 *   setRange: null is the whole call
 */
export function Waveform({ peaks, length, time, range, setRange, playAt }) {
  const room = useRef(/** @type {HTMLDivElement | null} */ (null))
  const plotted = useRef(/** @type {uPlot | null} */ (null))
  const latest = useRef({ range, setRange })
  latest.current = { range, setRange }
  useEffect(() => {
    const element = /** @type {HTMLDivElement} */ (room.current)
    const lines = linesOf(peaks, length)
    const again = () => {
      plotted.current?.destroy()
      plotted.current = draw(element, lines, length, (next) => latest.current.setRange(next))
      look(plotted.current, latest.current.range)
    }
    again()
    const sizes = new ResizeObserver(
      () => element.clientWidth > 0 && plotted.current?.setSize({ width: element.clientWidth, height }),
    )
    sizes.observe(element)
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', again)
    return () => {
      sizes.disconnect()
      dark.removeEventListener('change', again)
      plotted.current?.destroy()
      plotted.current = null
    }
  }, [peaks, length])
  useEffect(() => look(plotted.current, range), [range.from, range.to])
  const part = (time - range.from) / (range.to - range.from)
  /** @param {MouseEvent} event */
  const clicked = (event) => {
    const { left, width } = /** @type {HTMLElement} */ (event.currentTarget).getBoundingClientRect()
    if (!isDragged.current) playAt(range.from + ((event.clientX - left) / width) * (range.to - range.from))
  }
  const isDragged = useRef(false)
  const down = useRef(0)
  return h('div', { class: 'waveform' }, [
    h('div', {
      ref: room,
      class: 'waveform-room',
      role: 'img',
      'aria-label': 'Loudness of agent (above) and caller (below)',
      onPointerDown: (/** @type {PointerEvent} */ event) => void (down.current = event.clientX),
      onPointerUp: (/** @type {PointerEvent} */ event) =>
        void (isDragged.current = Math.abs(event.clientX - down.current) > 5),
      onClick: clicked,
      onDblClick: () => setRange(null),
    }),
    part >= 0 && part <= 1 && h('div', { class: 'playhead', style: { left: `${part * 100}%` } }),
  ])
}

/** @param {uPlot | null} plot @param {Range} range */
const look = (plot, { from, to }) => plot?.setScale('x', { min: from, max: to })
