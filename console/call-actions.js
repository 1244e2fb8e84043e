/** Owns what can be done with a call: taken away as files, ended, read once more, deleted. How a supervisor listens and takes it over is supervisor-panel.js. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { ask } from './ask.js'
import { AskedButton } from './confirm.js'
import { Failure } from './parts.js'
import { go, home } from './router.js'
import { useHere } from './session.js'

/** @param {string} address @param {'wav' | 'opus'} format */
async function download(address, format) {
  const answer = /** @type {{ url: string }} */ (await ask(`${address}/audio/url?format=${format}`))
  const { pathname, search } = new URL(answer.url)
  location.assign(pathname + search)
}

/** @param {readonly import('./call-course.js').CourseTurn[]} turns @param {string} id */
function saveTranscript(turns, id) {
  const text = turns.map(({ from, who, text: said }) => `${from.toFixed(1)}\t${who}\t${said}`).join('\n')
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: 'text/plain' }))
  link.download = `${id}.txt`
  link.click()
  URL.revokeObjectURL(link.href)
}

/**
 * @param {{ whole: import('./use-call.js').WholeCall, turns: readonly import('./call-course.js').CourseTurn[], address: string, reload: () => void }} props
 */
export function CallActions({ whole: { call, peaks }, turns, address, reload }) {
  const { mayChange } = useHere()
  const [error, setError] = useState(/** @type {Error | null} */ (null))
  /** @param {() => Promise<unknown>} action */
  const run = (action) => () => {
    setError(null)
    action().then(reload, setError)
  }
  const isOver = call.status === 'completed'
  const button = (/** @type {string} */ label, /** @type {() => void} */ onClick, kind = 'quiet') =>
    h('button', { type: 'button', class: kind, onClick, key: label }, label)
  return h('div', { class: 'actions' }, [
    isOver &&
      (peaks !== null || call.duration !== undefined) &&
      button(
        'Recording',
        run(() => download(address, 'wav')),
      ),
    turns.length > 0 && button('Transcript', () => saveTranscript(turns, call.id)),
    mayChange &&
      !isOver &&
      call.progress === 'in_progress' &&
      button(
        'Hang up',
        run(() => ask(`${address}/hangup`, { method: 'POST' })),
        'danger',
      ),
    mayChange &&
      !isOver &&
      ['scheduled', 'queued'].includes(call.status) &&
      button(
        'Cancel',
        run(() => ask(`${address}/cancel`, { method: 'POST' })),
        'danger',
      ),
    mayChange &&
      isOver &&
      turns.length > 0 &&
      button(
        'Read again',
        run(() => ask(`${address}/post-processing`, { method: 'POST' })),
      ),
    mayChange &&
      isOver &&
      h(
        AskedButton,
        {
          label: 'Delete',
          title: 'Delete this call?',
          action: 'Delete it',
          run: async () => {
            await ask(address, { method: 'DELETE' })
            go(`${home}/calls`)
          },
        },
        'Its transcript, its recording and all that was learned go for good. What receivers were told stays with them.',
      ),
    error && h(Failure, { error }),
  ])
}
