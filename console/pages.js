/** Owns which page stands at which address, and in which order they are offered. What is not looked at is not loaded. */
import { h } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Failure, Loading } from './parts.js'
import { home } from './router.js'
import { LivePage } from './live-page.js'

/**
 * @typedef {object} PageOfConsole
 * @property {string} path
 * @property {string} name
 * @property {string} key pressed after `g`
 * @property {import('preact').FunctionComponent} Page
 */

/**
 * @param {() => Promise<import('preact').FunctionComponent<any>>} load
 * @returns {import('preact').FunctionComponent<any>}
 */
function late(load) {
  /** @type {{ Page: import('preact').FunctionComponent<any> | null }} */
  const loaded = { Page: null }
  return (props) => {
    const [state, setState] = useState(/** @type {{ error: Error | null }} */ ({ error: null }))
    useEffect(() => {
      if (loaded.Page) return
      load().then(
        (Page) => {
          loaded.Page = Page
          setState({ error: null })
        },
        (error) => setState({ error }),
      )
    }, [])
    if (loaded.Page) return h(loaded.Page, props)
    // After a deploy the former files are gone.
    if (state.error) return h(Failure, { error: state.error, retry: () => location.reload() })
    return h(Loading, null)
  }
}

/** @type {readonly PageOfConsole[]} */
export const pages = [
  { path: home, name: 'Live', key: 'l', Page: LivePage },
  {
    path: `${home}/calls`,
    name: 'Calls',
    key: 'c',
    Page: late(async () => (await import('./calls-page.js')).CallsPage),
  },
]

const CallPage = late(async () => (await import('./call-page.js')).CallPage)

/**
 * @param {string} path
 * @returns {{ page: PageOfConsole | undefined, view: import('preact').VNode | null }} of which page it is a part, and what is shown
 */
export function viewAt(path) {
  const page = pages.find((one) => one.path === path)
  if (page) return { page, view: h(page.Page, { key: page.path }) }
  const [, section = '', id = ''] = /^\/console\/([a-z-]+)\/([\w-]+)$/.exec(path) ?? []
  const above = pages.find((one) => one.path === `${home}/${section}`)
  if (section === 'calls') return { page: above, view: h(CallPage, { callId: id, key: id }) }
  return { page: undefined, view: null }
}
