/** Owns what stands below the waveforms on the same axis: who spoke with the words in place, how long answers took, and what else happened. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { memo } from './memo.js'

/**
 * @typedef {import('./call-course.js').Mark} Mark
 * @typedef {{ mark: Mark, count: number, tone: string, left: number, right: number }} ShownMark percent of the axis; count: so many begin there
 */

/** Percent of the axis: what begins within is one mark, so that a lane has two hundred at most, whatever the call has. */
const slot = 0.5
/** The gravest last: of several it is what shows. */
const tones = ['plain', 'good', 'warn', 'bad']

/**
 * @param {readonly Mark[]} marks in their order
 * @param {import('./waveform.js').Range} range
 */
function shownOf(marks, { from, to }) {
  const place = (/** @type {number} */ time) => ((Math.min(Math.max(time, from), to) - from) / (to - from)) * 100
  /** @type {ShownMark[]} */
  const shown = []
  for (const mark of marks) {
    if (mark.to < from || mark.from > to) continue
    const [left, right] = [place(mark.from), place(mark.to)]
    const last = shown.at(-1)
    if (last === undefined || left >= last.left + slot) {
      shown.push({ mark, count: 1, tone: mark.tone, left, right })
      continue
    }
    last.count++
    last.right = Math.max(last.right, right)
    if (tones.indexOf(mark.tone) > tones.indexOf(last.tone)) last.tone = mark.tone
  }
  return shown
}

/** @param {ShownMark} shown */
const wordsOf = ({ mark, count }) =>
  count === 1 ? mark.title.slice(0, 300) : `${count} here; the first: ${mark.title.slice(0, 300)}`

/** From one mark to the next by arrows, so that Tab goes from lane to lane. @param {KeyboardEvent} event */
function step(event) {
  const marks = [.../** @type {HTMLElement} */ (event.currentTarget).querySelectorAll('button')]
  const at = marks.findIndex((mark) => mark === document.activeElement)
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: marks.length - 1 }[event.key]
  if (next === undefined || at < 0) return
  event.preventDefault()
  marks[next]?.focus()
}

/**
 * @param {{ lanes: readonly import('./call-course.js').Lane[], range: import('./waveform.js').Range, playAt: (time: number) => void }} props
 */
function LanesOf({ lanes, range, playAt }) {
  const [told, setTold] = useState('')
  return h('div', { class: 'lanes' }, [
    lanes.map(({ name, marks }) =>
      h('div', { class: 'lane', key: name, role: 'group', 'aria-label': name }, [
        h('span', { class: 'lane-name' }, name),
        h(
          'div',
          { class: 'lane-room', onKeyDown: step },
          shownOf(marks, range).map((shown, index) => {
            const words = wordsOf(shown)
            const { mark, tone, left, right } = shown
            const tell = () => setTold(`${name}: ${words}`)
            return h(
              'button',
              {
                type: 'button',
                tabIndex: index === 0 ? 0 : -1,
                class: `mark ${tone}`,
                title: words,
                'aria-label': words,
                style: { left: `${left}%`, width: `${Math.max(0.15, right - left)}%` },
                onClick: () => playAt(mark.from),
                onFocus: tell,
                onPointerEnter: tell,
              },
              right - left > 3 && mark.text !== '' ? h('bdi', null, mark.text.slice(0, 120)) : null,
            )
          }),
        ),
      ]),
    ),
    // Who has no pointer that rests on a mark reads here what it is.
    h('p', { class: 'mark-told soft', 'aria-hidden': 'true' }, h('bdi', null, told)),
  ])
}

/** Drawn again when somebody looks closer, not while the sound plays. */
export const Lanes = memo(LanesOf)
