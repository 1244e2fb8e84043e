/** Owns the question before what cannot be taken back. */
import { h } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Failure } from './parts.js'

/**
 * @typedef {object} Question
 * @property {string} title
 * @property {string} action
 * @property {import('preact').ComponentChildren} [children]
 * @property {() => Promise<unknown>} run
 */

/**
 * A button that asks before it does anything.
 * @param {Question & { label: string, class?: string, name?: string }} props name: for those who do not see what it stands beside
 */
export function AskedButton({ label, class: kind = 'danger', name, ...question }) {
  const [isAsked, setAsked] = useState(false)
  return [
    h('button', { type: 'button', class: kind, onClick: () => setAsked(true), 'aria-label': name }, label),
    isAsked && h(Confirm, { ...question, close: () => setAsked(false) }),
  ]
}

/** Closes by itself when it is done. @param {Question & { close: () => void }} props */
function Confirm({ title, action, children, run, close }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null))
  const [state, setState] = useState(
    /** @type {{ isRunning: boolean, error: Error | null }} */ ({ isRunning: false, error: null }),
  )
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  const act = () => {
    setState({ isRunning: true, error: null })
    run().then(close, (error) => setState({ isRunning: false, error }))
  }
  return h('dialog', { ref: dialog, onClose: close, 'aria-labelledby': 'question' }, [
    h('h2', { id: 'question' }, title),
    h('div', { class: 'question' }, children),
    h(Failure, { error: state.error }),
    h('div', { class: 'actions' }, [
      h('button', { type: 'button', class: 'quiet', onClick: () => dialog.current?.close() }, 'Keep it'),
      h('button', { type: 'button', class: 'danger', disabled: state.isRunning, onClick: act }, action),
    ]),
  ])
}
