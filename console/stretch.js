/** Owns long lists that are known as a whole: a stretch of one is drawn, with the ways to those before and after it. */
import { h } from 'preact'
import { useState } from 'preact/hooks'

/**
 * @template Item
 * @param {readonly Item[]} list
 * @param {number} most that are drawn at once
 * @returns {{ shown: readonly Item[], pager: import('preact').VNode | null }} pager is null where all are shown
 */
export function useStretch(list, most) {
  const [from, setFrom] = useState(0)
  const lastStart = Math.max(0, Math.ceil(list.length / most) - 1) * most
  const first = Math.min(from, lastStart)
  const shown = list.slice(first, first + most)
  if (list.length <= most) return { shown, pager: null }
  const after = list.length - first - shown.length
  const button = (/** @type {string} */ label, /** @type {number} */ next) =>
    h('button', { type: 'button', class: 'quiet', onClick: () => setFrom(next), key: label.slice(0, 4) }, label)
  const told = `${(first + 1).toLocaleString()} to ${(first + shown.length).toLocaleString()} of ${list.length.toLocaleString()}`
  const pager = h('div', { class: 'pager', role: 'group', 'aria-label': 'Parts of the list' }, [
    h('span', { class: 'soft', role: 'status' }, told),
    first > 0 && button('Before', first - most),
    after > 0 && button('Next', first + most),
  ])
  return { shown, pager }
}
