/** Owns where the console is: the address says which page with which filters, so that every view can be linked to and gone back to. */
import { h } from 'preact'
import { useEffect, useState } from 'preact/hooks'

export const home = '/console'

/** @type {Set<() => void>} */
const watchers = new Set()
const told = () => watchers.forEach((watcher) => watcher())
addEventListener('popstate', told)

/** @param {string} to path of the console, with its query */
export function go(to) {
  if (to === location.pathname + location.search) return
  history.pushState(null, '', to)
  told()
  scrollTo(0, 0)
}

/** The place now; whoever uses it is drawn again when it changes. */
export function usePlace() {
  const [place, setPlace] = useState(placeNow)
  useEffect(() => {
    const watcher = () => setPlace(placeNow())
    watchers.add(watcher)
    watcher()
    return () => void watchers.delete(watcher)
  }, [])
  return place
}

const placeNow = () => ({ path: location.pathname.replace(/\/+$/, ''), query: new URLSearchParams(location.search) })

/**
 * The query of the place with some of it changed; empty values leave it.
 * @param {URLSearchParams} query
 * @param {Record<string, string | null | undefined>} changes
 */
export function placeWith(query, changes, path = location.pathname) {
  const next = new URLSearchParams(query)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === '') next.delete(name)
    else next.set(name, value)
  }
  const text = next.toString()
  return text === '' ? path : `${path}?${text}`
}

/**
 * A link within the console; with a modifier the browser does with it what it does with links.
 * @param {{ href: string, class?: string, children?: import('preact').ComponentChildren, 'aria-current'?: 'page' | undefined, title?: string, 'data-row'?: boolean, onClick?: () => void }} props
 */
export function Link({ href, children, onClick, ...rest }) {
  /** @param {MouseEvent} event */
  const follow = (event) => {
    onClick?.()
    if (
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return
    event.preventDefault()
    go(href)
  }
  return h('a', { href, onClick: follow, ...rest }, children)
}
