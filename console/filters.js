/** Owns the filters above a list: they stand in the address, and a change of one begins at the first page. */
import { h } from 'preact'
import { Field } from './parts.js'
import { go, placeWith } from './router.js'

/** @param {URLSearchParams} query @returns {(name: string) => (value: string) => void} */
export const putIn = (query) => (name) => (value) => go(placeWith(query, { [name]: value, cursor: null }))

/** @param {Event} event */
const textOf = (event) => /** @type {HTMLInputElement} */ (event.currentTarget).value

/** @param {{ children?: import('preact').ComponentChildren, onSubmit?: () => void }} props */
export const Filters = ({ children, onSubmit }) =>
  h(
    'form',
    {
      class: 'filters',
      role: 'search',
      'aria-label': 'Filters',
      onSubmit: (/** @type {Event} */ event) => {
        event.preventDefault()
        onSubmit?.()
      },
    },
    children,
  )

/** @param {{ label: string, name: string, query: URLSearchParams }} props */
export const DayFilter = ({ label, name, query }) =>
  h(
    Field,
    { label },
    h('input', {
      type: 'date',
      value: query.get(name) ?? '',
      onChange: (/** @type {Event} */ event) => putIn(query)(name)(textOf(event)),
    }),
  )

/**
 * Taken over when one leaves it or presses Enter.
 * @param {{ label: string, name: string, query: URLSearchParams, placeholder?: string, wide?: boolean }} props
 */
export const TextFilter = ({ label, name, query, placeholder, wide = false }) =>
  h(
    Field,
    { label, class: wide ? 'wide' : '' },
    h('input', {
      type: wide ? 'search' : 'text',
      maxLength: 500,
      value: query.get(name) ?? '',
      placeholder,
      onChange: (/** @type {Event} */ event) => putIn(query)(name)(textOf(event).trim()),
    }),
  )
