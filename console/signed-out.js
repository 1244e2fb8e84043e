/** Owns what is said to who is not signed in any more while they type: that nothing of it is lost, and how it goes on. */
import { h } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { onSignedOut, signInAddress } from './ask.js'

export function SignedOut() {
  const [isOut, setOut] = useState(false)
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null))
  useEffect(() => onSignedOut(() => setOut(true)), [])
  useEffect(() => {
    if (isOut && !dialog.current?.open) dialog.current?.showModal()
  }, [isOut])
  if (!isOut) return null
  return h('dialog', { ref: dialog, onClose: () => setOut(false), 'aria-labelledby': 'signed-out' }, [
    h('h2', { id: 'signed-out' }, 'You are signed out'),
    h(
      'p',
      { class: 'question' },
      'What you have typed is still here. Sign in again in a new tab, close this, and save it then.',
    ),
    h('div', { class: 'actions' }, [
      h('a', { class: 'button', href: signInAddress(), target: '_blank', rel: 'noopener' }, 'Sign in, in a new tab'),
      h('button', { type: 'button', class: 'quiet', onClick: () => dialog.current?.close() }, 'Close this'),
    ]),
  ])
}
