/** Owns lists that are told page by page: which one is asked for stands in the address, so that going back goes a page back. */
import { h } from 'preact'
import { Link, placeWith } from './router.js'

/**
 * What the API is asked for by what stands in the address of the console. Days are those of who looks; `to` is the last one that counts.
 * @param {string} path
 * @param {URLSearchParams} query
 * @param {readonly string[]} names
 * @param {{ limit?: number, times?: readonly string[] }} [how]
 */
export function pageAddress(path, query, names, { limit = 50, times = [] } = {}) {
  const asked = new URLSearchParams({ limit: String(limit) })
  for (const name of [...names, 'cursor']) {
    const value = query.get(name)
    if (value === null || value === '') continue
    const time = times.includes(name) ? dayOf(value, name === 'to') : value
    if (time !== null) asked.set(name, time)
  }
  return `${path}?${asked}`
}

/**
 * @param {string} text `2026-12-01`
 * @param {boolean} isEnd
 */
function dayOf(text, isEnd) {
  const [year, month, day] = text.split('-').map(Number)
  const date = new Date(year ?? NaN, (month ?? NaN) - 1, (day ?? NaN) + (isEnd ? 1 : 0))
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}

/** @param {{ query: URLSearchParams, next: string | null }} props */
export function Cursors({ query, next }) {
  const isFirst = !query.has('cursor')
  if (isFirst && next === null) return null
  return h('nav', { class: 'pager', 'aria-label': 'Pages of the list' }, [
    isFirst ? null : h(Link, { href: placeWith(query, { cursor: null }), class: 'button quiet' }, 'Newest'),
    next !== null && h(Link, { href: placeWith(query, { cursor: next }), class: 'button' }, 'Older'),
  ])
}
