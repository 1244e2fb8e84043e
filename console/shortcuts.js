/** Owns the keys of the console: `g` and a letter goes to a page, `/` to the first field of it, `j` and `k` through a list, `?` tells of them. */
import { h } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { pagesOf } from './pages.js'
import { go } from './router.js'
import { useHere } from './session.js'

const fields = 'main input, main select, main textarea'
/** Ms between `g` and its letter. */
const together = 1_500

/** @param {EventTarget | null} target */
const isWriting = (target) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))

/** @param {1 | -1} step */
function stepThroughList(step) {
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('main [data-row]')])
  const at = rows.findIndex((row) => row === document.activeElement)
  const next = rows[at < 0 && step < 0 ? rows.length - 1 : at + step]
  next?.focus()
}

/** @param {{ showKeys: () => void }} actions */
export function useShortcuts({ showKeys }) {
  const here = useHere()
  const since = useRef(0)
  useEffect(() => {
    /** @param {KeyboardEvent} event */
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return
      const isSecond = performance.now() - since.current < together
      since.current = 0
      const page = isSecond && pagesOf(here).find(({ key }) => key === event.key)
      if (page) go(page.path)
      else if (event.key === 'g') since.current = performance.now()
      else if (event.key === '?') showKeys()
      else if (event.key === 'j' || event.key === 'k') stepThroughList(event.key === 'j' ? 1 : -1)
      else if (event.key === '/') {
        event.preventDefault()
        const field = /** @type {HTMLElement | null} */ (document.querySelector(fields))
        field?.focus()
      }
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [here])
}

/** @param {{ close: () => void }} props */
export function Shortcuts({ close }) {
  const here = useHere()
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null))
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  const rows = [
    ...pagesOf(here).map(({ key, name }) => [`g ${key}`, name]),
    ['/', 'First field of the page'],
    ['j k', 'Down and up in a list'],
    ['space', 'Play or pause, in a call'],
    ['← →', 'Five seconds back or on, in a call; from mark to mark, in a row of them'],
    ['+ - 0', 'Look closer, at more, at the whole call'],
    ['?', 'These keys'],
  ]
  return h('dialog', { ref: dialog, onClose: close, 'aria-labelledby': 'keys' }, [
    h('h2', { id: 'keys' }, 'Keys'),
    h(
      'dl',
      { class: 'keys' },
      rows.map(([keys, does]) => h('div', null, [h('dt', null, h('kbd', null, keys)), h('dd', null, does)])),
    ),
    h('form', { method: 'dialog' }, h('button', { class: 'quiet' }, 'Close')),
  ])
}
