/** Owns the start of the console: whose it is, and the shell around its pages. A service that is not there yet is asked again. */
import { h, render } from 'preact'
import { ask, isPassing, useToken } from './ask.js'
import { Failure } from './parts.js'
import { Shell } from './shell.js'

/** Ms. */
const againAfter = 5_000

async function start() {
  const root = /** @type {HTMLElement} */ (document.getElementById('console'))
  try {
    const session = /** @type {import('./answers').Session} */ (await ask('/console/session'))
    useToken(session)
    render(h(Shell, { session }), root)
  } catch (error) {
    const retry = () => location.reload()
    render(h('main', { class: 'alone' }, h(Failure, { error: /** @type {Error} */ (error), retry })), root)
    if (isPassing(error)) setTimeout(start, againAfter)
  }
}

void start()
