/** Owns the start of the console: whose it is, and the shell around its pages. */
import { h, render } from 'preact'
import { ask, useToken } from './ask.js'
import { Failure } from './parts.js'
import { Shell } from './shell.js'

async function start() {
  const root = /** @type {HTMLElement} */ (document.getElementById('console'))
  try {
    const session = await ask('/console/session')
    useToken(/** @type {import('./answers').Session} */ (session).csrf)
    render(h(Shell, { session: /** @type {import('./answers').Session} */ (session) }), root)
  } catch (error) {
    const retry = () => location.reload()
    render(h('main', { class: 'alone' }, h(Failure, { error: /** @type {Error} */ (error), retry })), root)
  }
}

void start()
