/** Owns what surrounds every page: where one can go, whose account it is, and the keys that lead there. */
import { h } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { pagesOf, viewAt } from './pages.js'
import { Empty } from './parts.js'
import { go, home, Link, usePlace } from './router.js'
import { hereOf, HereContext, useHere } from './session.js'
import { Shortcuts, useShortcuts } from './shortcuts.js'
import { SignedOut } from './signed-out.js'
import { UnsetNotes } from './unset-notes.js'

const storedAccount = 'parley-account'

/** @param {{ session: import('./answers').Session }} props */
export function Shell({ session }) {
  const { path } = usePlace()
  const [accountId, setAccountId] = useState(() => localStorage.getItem(storedAccount))
  const here = useMemo(() => hereOf(session, accountId), [session, accountId])
  const { page, view } = viewAt(path)
  const main = useRef(/** @type {HTMLElement | null} */ (null))
  useEffect(() => {
    document.title = `${page?.name ?? 'Nothing here'} · Parley`
  }, [page])
  useFocusOnArrival(main, path)
  if (!here)
    return h(
      'main',
      { class: 'alone' },
      h(
        Empty,
        { title: 'You belong to no account' },
        'Ask an owner of an account to invite you. Then reload this page.',
      ),
    )
  /** @param {string} id */
  const choose = (id) => {
    localStorage.setItem(storedAccount, id)
    setAccountId(id)
    go(home)
  }
  return h(HereContext.Provider, { value: here }, [
    h(
      'a',
      {
        class: 'skip',
        href: '#main',
        onClick: (/** @type {Event} */ event) => {
          event.preventDefault()
          main.current?.focus()
        },
      },
      'Skip to the page',
    ),
    h(Sidebar, { current: page?.path ?? '', choose }),
    h('main', { id: 'main', tabIndex: -1, ref: main, key: here.account.id }, [
      h(UnsetNotes, { key: 'notes' }),
      view ??
        h(
          Empty,
          { title: 'Nothing here', action: h(Link, { href: home }, 'To the calls of now') },
          'The address leads nowhere in this console.',
        ),
    ]),
    h(Keys, {}),
    h(SignedOut, {}),
  ])
}

/**
 * Who uses a screen reader hears that the page is another one: its title has the focus, also where it comes late, or anew, until a key or the pointer
 * is pressed.
 * @param {{ current: HTMLElement | null }} main
 * @param {string} path
 */
function useFocusOnArrival(main, path) {
  const former = useRef(path)
  useEffect(() => {
    const place = main.current
    if (former.current === path || !place) return
    former.current = path
    const focusTitle = () => {
      const title = place.querySelector('h1')
      if (title) title.focus({ preventScroll: true })
      else place.focus({ preventScroll: true })
    }
    const isUnfocused = () => document.activeElement === document.body || document.activeElement === place
    const changes = new MutationObserver(() => isUnfocused() && focusTitle())
    const arrived = () => {
      changes.disconnect()
      removeEventListener('keydown', arrived)
      removeEventListener('pointerdown', arrived)
    }
    focusTitle()
    changes.observe(place, { childList: true, subtree: true })
    addEventListener('keydown', arrived)
    addEventListener('pointerdown', arrived)
    return arrived
  }, [path])
}

/** @param {{ current: string, choose: (id: string) => void }} props */
function Sidebar({ current, choose }) {
  const here = useHere()
  const { session, account } = here
  const [isOpen, setOpen] = useState(false)
  const close = () => setOpen(false)
  return h('div', { class: `sidebar${isOpen ? ' open' : ''}` }, [
    h('div', { class: 'brand-row' }, [
      h(Link, { href: home, class: 'brand' }, 'Parley'),
      h(
        'button',
        {
          type: 'button',
          class: 'quiet menu',
          'aria-expanded': isOpen,
          'aria-controls': 'places',
          onClick: () => setOpen(!isOpen),
        },
        'Menu',
      ),
    ]),
    h('div', { class: 'places', id: 'places' }, [
      h(
        'nav',
        { 'aria-label': 'Pages' },
        h(
          'ul',
          null,
          pagesOf(here).map(({ path, name }) =>
            h(
              'li',
              { key: path },
              h(Link, { href: path, onClick: close, 'aria-current': path === current ? 'page' : undefined }, name),
            ),
          ),
        ),
      ),
      h('div', { class: 'whose' }, [
        session.accounts.length > 1
          ? h('label', null, [
              h('span', { class: 'hint' }, 'Account'),
              h(
                'select',
                {
                  value: account.id,
                  onChange: (/** @type {Event} */ event) =>
                    choose(/** @type {HTMLSelectElement} */ (event.currentTarget).value),
                },
                session.accounts.map(({ id, name }) => h('option', { value: id, selected: id === account.id }, name)),
              ),
            ])
          : h('p', { class: 'account' }, h('bdi', null, account.name)),
        h('p', { class: 'hint' }, [h('bdi', null, session.user.name ?? session.user.email), ` · ${account.role}`]),
        h('p', null, h('a', { href: '/account' }, 'Your account')),
      ]),
    ]),
  ])
}

function Keys() {
  const [isShown, setShown] = useState(false)
  useShortcuts({ showKeys: () => setShown(true) })
  return isShown ? h(Shortcuts, { close: () => setShown(false) }) : null
}
