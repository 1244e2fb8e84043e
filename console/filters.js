/** Owns the filters above a list: they stand in the address, and a change of one begins at the first page. */
import { h } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Field } from './parts.js'
import { go, placeWith } from './router.js'

/** @param {URLSearchParams} query @returns {(name: string) => (value: string) => void} */
export const putIn = (query) => (name) => (value) => go(placeWith(query, { [name]: value, cursor: null }))

/** @param {Event} event */
const textOf = (event) => /** @type {HTMLInputElement} */ (event.currentTarget).value

/** @param {{ children?: import('preact').ComponentChildren }} props */
export const Filters = ({ children }) =>
  h(
    'form',
    {
      class: 'filters',
      role: 'search',
      'aria-label': 'Filters',
      onSubmit: (/** @type {Event} */ event) => event.preventDefault(),
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
export function TextFilter({ label, name, query, placeholder, wide = false }) {
  const asked = query.get(name) ?? ''
  // What is being typed stays, whatever is drawn meanwhile.
  const [text, setText] = useState(asked)
  useEffect(() => setText(asked), [asked])
  return h(
    Field,
    { label, class: wide ? 'wide' : '' },
    h('input', {
      type: wide ? 'search' : 'text',
      maxLength: 500,
      value: text,
      placeholder,
      onInput: (/** @type {Event} */ event) => setText(textOf(event)),
      onChange: (/** @type {Event} */ event) => putIn(query)(name)(textOf(event).trim()),
    }),
  )
}
