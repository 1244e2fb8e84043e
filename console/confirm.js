/** Owns the question before what cannot be taken back. */
import { h } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Failure } from './parts.js'

/**
 * Closes by itself when it is done.
 * @param {{ title: string, action: string, children?: import('preact').ComponentChildren, run: () => Promise<unknown>, close: () => void }} props
 */
export function Confirm({ title, action, children, run, close }) {
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
