/** Owns the transcript as it is read: turn by turn, with how long each answer took, and heard from where one clicks. */
import { h } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { durationOf, msOf } from './format.js'
import { memo } from './memo.js'
import { Text } from './parts.js'

/** @typedef {import('./call-course.js').CourseTurn} CourseTurn */

/** Characters of a turn that are shown at once. */
const mostText = 1_500
/** Turns that are drawn at once. */
const stretch = 100

const stages = /** @type {const} */ ([
  ['endOfTurn', 'End of turn'],
  ['recognised', 'Recognised'],
  ['decided', 'Decided'],
  ['firstAudio', 'First sound'],
  ['firstPacket', 'Heard'],
])

/** @param {{ latency: import('./answers').Latency, longest: number }} props */
function Waterfall({ latency, longest }) {
  const reached = stages.flatMap(([name, label]) => {
    const ms = latency[name]
    return ms === null ? [] : [{ name, label, ms }]
  })
  const total = reached.at(-1)?.ms ?? 0
  const words = reached.map(({ label, ms }) => `${label} ${msOf(ms)}`).join(', ')
  return h('details', { class: 'waterfall' }, [
    h('summary', null, [
      `answered after ${msOf(total)}`,
      h(
        'span',
        { class: 'waterfall-bar', role: 'img', 'aria-label': words },
        reached.map(({ name, ms }, at) =>
          h('span', {
            key: name,
            class: `stage stage-${name}`,
            style: { width: `${((ms - (reached[at - 1]?.ms ?? 0)) / Math.max(1, longest)) * 100}%` },
          }),
        ),
      ),
    ]),
    h(
      'ol',
      { class: 'stages' },
      reached.map(({ name, label, ms }, at) =>
        h('li', { key: name }, [
          h('span', { class: `stage-dot stage-${name}` }),
          `${label} at ${msOf(ms)}`,
          at > 0 && h('span', { class: 'soft' }, ` (+${msOf(ms - (reached[at - 1]?.ms ?? 0))})`),
        ]),
      ),
    ),
  ])
}

/** @param {{ text: string }} props */
function Words({ text }) {
  const [isWhole, setWhole] = useState(false)
  const isLong = text.length > mostText && !isWhole
  return h('p', { class: 'words' }, [
    h(Text, null, isLong ? `${text.slice(0, mostText)} …` : text),
    isLong &&
      h(
        'button',
        { type: 'button', class: 'quiet small', onClick: () => setWhole(true) },
        `Show all ${text.length.toLocaleString()} characters`,
      ),
  ])
}

/** @param {{ turn: CourseTurn, isNow: boolean, longest: number, playAt: ((time: number) => void) | null }} props */
function TurnOf({ turn, isNow, longest, playAt }) {
  const { speaker, from, text, latency, confidence, isCutOff, who } = turn
  const time = durationOf(from)
  return h(
    'li',
    {
      class: `turn ${speaker}${isNow ? ' now' : ''}`,
      id: `turn-${turn.index}`,
      'aria-current': isNow ? 'true' : undefined,
    },
    [
      h('div', { class: 'turn-head' }, [
        h('span', { class: 'who' }, who),
        playAt
          ? h(
              'button',
              { type: 'button', class: 'plain', title: 'Hear it', 'data-row': true, onClick: () => playAt(from) },
              time,
            )
          : time,
        confidence !== null &&
          confidence < 0.6 &&
          h('span', { class: 'badge warn' }, `unsure, ${Math.round(confidence * 100)} %`),
        isCutOff && h('span', { class: 'badge warn' }, 'cut off by the caller'),
        latency && h(Waterfall, { latency, longest }),
      ]),
      h(Words, { text }),
    ],
  )
}
const TurnItem = memo(TurnOf)

/**
 * A call of hours is drawn a stretch at a time, around what is heard.
 * @param {{ turns: readonly CourseTurn[], now: number, isPlaying: boolean, playAt: ((time: number) => void) | null }} props now: index of a turn
 */
export function TurnList({ turns, now, isPlaying, playAt }) {
  const [from, setFrom] = useState(0)
  const list = useRef(/** @type {HTMLElement | null} */ (null))
  const first = Math.min(from, Math.max(0, turns.length - 1))
  useEffect(() => {
    if (now >= 0 && (now < first || now >= first + stretch)) setFrom(Math.floor(now / stretch) * stretch)
    if (!isPlaying) return
    const item = list.current?.querySelector(`#turn-${now}`)
    const room = list.current?.getBoundingClientRect()
    const place = item?.getBoundingClientRect()
    if (!list.current || !room || !place) return
    if (place.top < room.top || place.bottom > room.bottom)
      list.current.scrollTop += place.top - room.top - room.height / 3
  }, [now, isPlaying])
  const longest = Math.max(
    ...turns.slice(first, first + stretch).map(({ latency }) => latency?.firstPacket ?? latency?.firstAudio ?? 0),
  )
  const more = (/** @type {number} */ next, /** @type {string} */ label) =>
    h('button', { type: 'button', class: 'quiet', onClick: () => setFrom(next) }, label)
  return [
    first > 0 && more(Math.max(0, first - stretch), 'Earlier'),
    h(
      'div',
      { class: 'turns-room', ref: list, tabIndex: 0, role: 'region', 'aria-label': 'Transcript' },
      h(
        'ol',
        { class: 'turns' },
        turns
          .slice(first, first + stretch)
          .map((turn) => h(TurnItem, { key: turn.index, turn, isNow: turn.index === now, longest, playAt })),
      ),
    ),
    first + stretch < turns.length &&
      more(first + stretch, `Later (${(turns.length - first - stretch).toLocaleString()} more)`),
  ]
}
