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
 * @property {boolean} [isForViewers] absent: it is
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
const pages = [
  { path: home, name: 'Live', key: 'l', Page: LivePage },
  {
    path: `${home}/calls`,
    name: 'Calls',
    key: 'c',
    Page: late(async () => (await import('./calls-page.js')).CallsPage),
  },
  {
    path: `${home}/workers`,
    name: 'Workers',
    key: 'w',
    Page: late(async () => (await import('./workers-page.js')).WorkersPage),
  },
  {
    path: `${home}/persons`,
    name: 'Persons',
    key: 'p',
    Page: late(async () => (await import('./persons-page.js')).PersonsPage),
  },
  {
    path: `${home}/documents`,
    name: 'Documents',
    key: 'd',
    Page: late(async () => (await import('./documents-page.js')).DocumentsPage),
  },
  {
    path: `${home}/trunks`,
    name: 'Trunks',
    key: 't',
    Page: late(async () => (await import('./trunks-page.js')).TrunksPage),
  },
  {
    path: `${home}/webhooks`,
    name: 'Webhooks',
    key: 'h',
    Page: late(async () => (await import('./webhooks-page.js')).WebhooksPage),
  },
  {
    path: `${home}/simulations`,
    name: 'Simulations',
    key: 's',
    Page: late(async () => (await import('./simulations-page.js')).SimulationsPage),
  },
  {
    path: `${home}/developers`,
    name: 'Developers',
    key: 'k',
    Page: late(async () => (await import('./developers-page.js')).DevelopersPage),
  },
  {
    path: `${home}/audit`,
    name: 'Audit',
    key: 'a',
    isForViewers: false,
    Page: late(async () => (await import('./audit-page.js')).AuditPage),
  },
  {
    path: `${home}/users`,
    name: 'Users',
    key: 'u',
    Page: late(async () => (await import('./users-page.js')).UsersPage),
  },
]

/** What is offered. @param {import('./session.js').Here} here */
export const pagesOf = ({ mayChange }) => pages.filter(({ isForViewers = true }) => isForViewers || mayChange)

/** By the first part of their addresses; the second is their id. */
/** @type {Record<string, import('preact').FunctionComponent<any>>} */
const inner = {
  calls: late(async () => (await import('./call-page.js')).CallPage),
  workers: late(async () => (await import('./worker-page.js')).WorkerPage),
  persons: late(async () => (await import('./person-page.js')).PersonPage),
  documents: late(async () => (await import('./document-page.js')).DocumentPage),
  simulations: late(async () => (await import('./simulation-page.js')).SimulationPage),
  webhooks: late(async () => (await import('./webhook-page.js')).WebhookPage),
}

/**
 * @param {string} path
 * @returns {{ page: PageOfConsole | undefined, view: import('preact').VNode | null }} of which page it is a part, and what is shown
 */
export function viewAt(path) {
  const page = pages.find((one) => one.path === path)
  if (page) return { page, view: h(page.Page, { key: page.path }) }
  const [, section = '', id = ''] = /^\/console\/([a-z-]+)\/([\w-]+)$/.exec(path) ?? []
  const above = pages.find((one) => one.path === `${home}/${section}`)
  const Inner = Object.hasOwn(inner, section) ? inner[section] : undefined
  if (Inner) return { page: above, view: h(Inner, { id, key: id }) }
  return { page: undefined, view: null }
}
