/** Owns what of a long list is in sight: that is drawn at every change, the rest now and then. */
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { useEvery } from './use-loaded.js'

/** Ms until what is out of sight is drawn again. */
const restEvery = 5_000

/**
 * @template {{ id: string }} Item
 * @param {readonly Item[]} items
 * @returns {{ shown: readonly Item[], watch: (element: HTMLElement | null) => void }} shown: those that are out of sight as they were, until it is their
 *   turn; watch: the `ref` of the element of an item, whose `data-id` is the item's. It has `data-in-sight` as long as it is
 */
export function useInSight(items) {
  const [, draw] = useState({})
  const state = useRef({ ids: new Set(), former: /** @type {Map<string, Item>} */ (new Map()), isRestDue: true })
  const observer = useMemo(
    () =>
      new IntersectionObserver((entries) => {
        for (const { target, isIntersecting } of entries) {
          const element = /** @type {HTMLElement} */ (target)
          element.toggleAttribute('data-in-sight', isIntersecting)
          const { ids } = state.current
          if (isIntersecting) ids.add(element.dataset['id'])
          else ids.delete(element.dataset['id'])
        }
        draw({})
      }),
    [],
  )
  useEffect(() => () => observer.disconnect(), [observer])
  useEvery(restEvery, () => {
    state.current.isRestDue = true
    draw({})
  })
  const watch = useCallback(
    (/** @type {HTMLElement | null} */ element) => element && observer.observe(element),
    [observer],
  )
  const { ids, former, isRestDue } = state.current
  const shown = items.map((item) => (isRestDue || ids.has(item.id) ? item : (former.get(item.id) ?? item)))
  Object.assign(state.current, { former: new Map(shown.map((item) => [item.id, item])), isRestDue: false })
  return { shown, watch }
}
