/** Owns the banner for owners: what matters and is not set for this service, as its start tells it, until somebody has read it. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { Text } from './parts.js'
import { useHere } from './session.js'

/** Of this browser: which notes were put away. Others, or more of them, are shown again. */
const storedNotes = 'parley-notes-read'

export function UnsetNotes() {
  const { session, isOwner } = useHere()
  const notes = isOwner ? session.notes : []
  const [read, setRead] = useState(() => localStorage.getItem(storedNotes))
  const all = JSON.stringify(notes)
  if (notes.length === 0 || read === all) return null
  const putAway = () => {
    localStorage.setItem(storedNotes, all)
    setRead(all)
  }
  return h('section', { class: 'notice warn unset', 'aria-label': 'What is not set' }, [
    h(
      'ul',
      { class: 'plain-list' },
      notes.map((note) => h('li', { key: note }, h(Text, null, note))),
    ),
    h('button', { type: 'button', class: 'quiet small', onClick: putAway }, 'I have read it'),
  ])
}
