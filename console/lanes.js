/** Owns what stands below the waveforms on the same axis: who spoke with the words in place, how long answers took, and what else happened. */
import { h } from 'preact'
import { memo } from './memo.js'

/**
 * Marks that would stand on one another are one: a call of hours has thousands, and a screen a thousand places.
 * @param {readonly import('./call-course.js').Mark[]} marks
 * @param {import('./waveform.js').Range} range
 */
function shownOf(marks, { from, to }) {
  const place = (/** @type {number} */ time) => ((Math.min(Math.max(time, from), to) - from) / (to - from)) * 100
  let end = -1
  /** @type {{ mark: import('./call-course.js').Mark, left: number, width: number }[]} */
  const shown = []
  for (const mark of marks) {
    if (mark.to < from || mark.from > to) continue
    const [left, right] = [place(mark.from), place(mark.to)]
    if (right <= end + 0.08) continue
    shown.push({ mark, left, width: Math.max(0.15, right - left) })
    end = right
  }
  return shown
}

/**
 * @param {{ lanes: readonly import('./call-course.js').Lane[], range: import('./waveform.js').Range, playAt: (time: number) => void }} props
 */
function LanesOf({ lanes, range, playAt }) {
  return h(
    'div',
    { class: 'lanes' },
    lanes.map(({ name, marks }) =>
      h('div', { class: 'lane', key: name, role: 'group', 'aria-label': name }, [
        h('span', { class: 'lane-name' }, name),
        h(
          'div',
          { class: 'lane-room' },
          shownOf(marks, range).map(({ mark, left, width }) =>
            h(
              'button',
              {
                type: 'button',
                tabIndex: -1,
                class: `mark ${mark.tone}`,
                title: mark.title.slice(0, 300),
                'aria-label': mark.title.slice(0, 300),
                style: { left: `${left}%`, width: `${width}%` },
                onClick: () => playAt(mark.from),
              },
              width > 3 && mark.text !== '' ? h('bdi', null, mark.text.slice(0, 120)) : null,
            ),
          ),
        ),
      ]),
    ),
  )
}

/** Drawn again when somebody looks closer, not while the sound plays. */
export const Lanes = memo(LanesOf)
