/** Owns the small things that all pages are made of. What is given as text is shown as text, whatever is in it. */
import { h } from 'preact'
import { isPassing, Refusal } from './ask.js'
import { useHere } from './session.js'

/** @typedef {import('preact').ComponentChildren} Children */

/** @param {{ tone?: string, children?: Children }} props */
export const Badge = ({ tone = 'plain', children }) => h('span', { class: `badge ${tone}` }, children)

/**
 * Text of others: of one direction of its own, so that nothing in it turns round what stands beside it.
 * @param {{ children?: Children, class?: string }} props
 */
export const Text = ({ children, class: name }) => h('bdi', { class: name ?? 'text' }, children)

/** @param {{ title: string, lead?: Children, actions?: Children, children?: Children }} props */
export const PageFrame = ({ title, lead, actions, children }) => [
  h('header', { class: 'page-head', key: 'head' }, [
    h('div', null, [h('h1', { tabIndex: -1 }, title), lead && h('p', { class: 'lead' }, lead)]),
    actions && h('div', { class: 'actions' }, actions),
  ]),
  h('div', { class: 'page-body', key: 'body' }, children),
]

/**
 * A part of a page that has a name.
 * @param {{ id: string, title: string, children?: Children, class?: string }} props
 */
export const Section = ({ id, title, children, class: name = 'card' }) =>
  h('section', { class: name, 'aria-labelledby': id }, [h('h2', { id }, title), children])

/**
 * What to do next, where there is nothing yet.
 * @param {{ title: string, children?: Children, action?: Children }} props
 */
export const Empty = ({ title, children, action }) =>
  h('div', { class: 'empty' }, [h('h2', null, title), children && h('p', null, children), action])

/**
 * The same where one is made on the page itself, by who may.
 * @param {{ title: string, children?: Children, action?: Children }} props
 */
export function NoneYet({ title, children, action }) {
  const { mayChange } = useHere()
  return h(Empty, { title, action }, mayChange ? children : 'Operators and owners of the account make them.')
}

/** For people: what programs are told names parts of requests, and a 404 says nothing more. @param {Error} error */
function sentenceOf(error) {
  if (!(error instanceof Refusal)) return error.message
  if (error.status === 404) return 'There is no such thing here: it was deleted, or it is of another account.'
  return error.issues.length > 0 ? 'Something is not right yet.' : error.message
}

/**
 * @param {{ error: Error | null, retry?: () => void, issues?: Refusal['issues'] }} props issues: those that are not told elsewhere
 */
export function Failure({ error, retry, issues = error instanceof Refusal ? error.issues : [] }) {
  if (!error) return null
  return h('div', { class: 'notice bad', role: 'alert' }, [
    h('p', null, h('strong', null, sentenceOf(error))),
    issues.length > 0 &&
      h(
        'ul',
        null,
        issues.map(({ path, message }) => h('li', null, [h('code', null, path), ` ${message}`])),
      ),
    error instanceof Refusal &&
      error.requestId !== null &&
      h('p', { class: 'soft' }, ['Request ', h('code', null, error.requestId)]),
    retry && isPassing(error) && h('p', null, 'It is asked again by itself.'),
    retry && h('button', { type: 'button', class: 'quiet', onClick: retry }, 'Try again'),
  ])
}

/** In place of what is not there yet, or cannot be had. @param {{ error: Error | null, reload: () => void }} props */
export const Awaited = ({ error, reload }) => (error ? h(Failure, { error, retry: reload }) : h(Loading, null))

export const Loading = () => h('p', { class: 'loading', role: 'status' }, 'Loading …')

/**
 * @param {{ label: string, children?: Children, hint?: Children, wrong?: string, class?: string }} props the control is the child, within its label
 */
export const Field = ({ label, children, hint, wrong, class: name = '' }) =>
  h('label', { class: `field ${name}` }, [
    h('span', { class: 'field-label' }, label),
    children,
    wrong && h('span', { class: 'wrong-field' }, `${label} ${wrong}`),
    hint && h('span', { class: 'hint' }, hint),
  ])

/**
 * @param {{ value: string, options: readonly (readonly [value: string, label: string])[], onChange: (value: string) => void, label?: string }} props
 */
export const Choice = ({ value, options, onChange, label }) =>
  h(
    'select',
    {
      value,
      'aria-label': label,
      onChange: (/** @type {Event} */ event) => onChange(/** @type {HTMLSelectElement} */ (event.currentTarget).value),
    },
    options.map(([one, text]) => h('option', { value: one, selected: one === value }, text)),
  )

/**
 * A table that may be wider than a telephone: it scrolls within itself, and can be reached by keyboard.
 * @param {{ label: string, head: readonly Children[], children?: Children, class?: string }} props
 */
export const Table = ({ label, head, children, class: name = '' }) =>
  h('div', { class: `table-room ${name}`, tabIndex: 0, role: 'region', 'aria-label': label }, [
    h('table', null, [
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          head.map((one) => h('th', { scope: 'col' }, one)),
        ),
      ),
      h('tbody', null, children),
    ]),
  ])

/** @param {{ children?: Children, label: string }} props */
export const Facts = ({ children, label }) => h('dl', { class: 'facts', 'aria-label': label }, children)

/** @param {{ name: string, children?: Children }} props */
export const Fact = ({ name, children }) => h('div', null, [h('dt', null, name), h('dd', null, children)])
