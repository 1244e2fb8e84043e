/** Owns the signaling of a call as a ladder: who sent what to whom, when, and each message whole where one opens it. */
import { h } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { ladderOf } from './ladder-rows.js'

/** @typedef {import('./ladder-rows.js').LadderRow} LadderRow */

/** @param {{ row: LadderRow, count: number }} props */
function Message({ row, count }) {
  const [isOpen, setOpen] = useState(false)
  const { time, label, party, isIn, message } = row
  // To the left of the service stand the others, the first one outermost.
  const place = { gridColumn: `${party + 2} / ${count + 3}`, '--span': count - party + 1 }
  return h('li', null, [
    h(
      'details',
      {
        onToggle: (/** @type {Event} */ event) => setOpen(/** @type {HTMLDetailsElement} */ (event.currentTarget).open),
      },
      [
        h('summary', { class: 'ladder-row', 'data-row': true }, [
          h('time', { class: 'number', dateTime: message.at, title: message.at }, time),
          h('span', { class: `ladder-arrow ${isIn ? 'in' : 'out'}`, style: place }, [
            h('bdi', null, label),
            h('span', { class: 'hidden-text' }, isIn ? ' to this service' : ' from this service'),
          ]),
        ]),
        isOpen &&
          h('div', { class: 'ladder-text' }, [
            h('p', { class: 'hint' }, [
              `${message.protocol} · `,
              h('bdi', null, isIn ? message.remote : message.local),
              ' → ',
              h('bdi', null, isIn ? message.local : message.remote),
            ]),
            h('pre', { tabIndex: 0 }, h('bdi', null, message.text)),
          ]),
      ],
    ),
  ])
}

/**
 * @param {{ messages: NonNullable<import('./answers').Diagnostics['messages']>, address: string }} props
 */
export function Ladder({ messages, address }) {
  const { parties, rows } = useMemo(() => ladderOf(messages.data), [messages])
  if (rows.length === 0) return null
  const count = parties.length
  return h('details', { class: 'card', open: true }, [
    h('summary', null, h('h2', null, `Signaling (${rows.length})`)),
    h(
      'div',
      { class: 'ladder', style: { '--parties': count + 1 }, tabIndex: 0, role: 'region', 'aria-label': 'Signaling' },
      [
        h('div', { class: 'ladder-row ladder-head' }, [
          h('span', null, 'Time'),
          [...parties, 'This service'].map((party) => h('strong', { key: party }, h('bdi', null, party))),
        ]),
        h(
          'ol',
          null,
          rows.map((row, at) => h(Message, { key: at, row, count })),
        ),
      ],
    ),
    messages.leftOut > 0 && h('p', { class: 'soft' }, `${messages.leftOut.toLocaleString()} more were not kept.`),
    h('p', null, h('a', { href: `${address}/capture`, download: '', class: 'button quiet small' }, 'Capture (pcap)')),
  ])
}
