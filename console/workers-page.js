/** Owns the list of workers: who answers under which number, and where a new one is made. */
import { h } from 'preact'
import { ask } from './ask.js'
import { Form } from './form.js'
import { Badge, Failure, Loading, NoneYet, PageFrame, Section, Table, Text } from './parts.js'
import { go, home, Link } from './router.js'
import { useHere } from './session.js'
import { useStretch } from './stretch.js'
import { useLoaded } from './use-loaded.js'
import { forgetWorkers } from './worker-names.js'

/** @typedef {import('./answers').Worker} Worker */

export function WorkersPage() {
  const { api, mayChange } = useHere()
  const { value, error, reload } = useLoaded(`${api}/workers`)
  const workers = /** @type {Worker[] | null} */ (value)
  const add = async (/** @type {import('./form.js').Filled} */ { fields: { name, language } }) => {
    const made = /** @type {Worker} */ (await ask(`${api}/workers`, { method: 'POST', json: { name, language } }))
    forgetWorkers(api)
    go(`${home}/workers/${made.id}`)
  }
  return h(PageFrame, { title: 'Workers', lead: 'The agents that talk: their settings, scripts and knowledge.' }, [
    h(Failure, { error, retry: reload }),
    workers === null
      ? !error && h(Loading, null)
      : workers.length === 0
        ? h(NoneYet, { title: 'No worker yet' }, 'Make one below. Then give it a script, and call it.')
        : h(Found, { workers }),
    mayChange &&
      h(Section, { id: 'new', title: 'Add a worker' }, [
        h(Form, {
          action: 'Add it',
          fields: [
            { name: 'name', label: 'Name', required: true },
            { name: 'language', label: 'Language', value: 'en-US', required: true, hint: 'Like en-US or de-DE' },
          ],
          save: add,
        }),
      ]),
  ])
}

/** @param {{ workers: Worker[] }} props */
function Found({ workers }) {
  const { shown, pager } = useStretch(workers, 50)
  return [
    h(
      Table,
      { label: 'Workers', class: 'rows', head: ['Name', 'Language', 'Called at', 'Calls as', 'State'] },
      shown.map((worker) => h(Row, { key: worker.id, worker })),
    ),
    pager,
  ]
}

/** @param {{ worker: Worker }} props */
const Row = ({ worker: { id, name, language, inboundPhoneNumber, outboundPhoneNumber, isActive } }) =>
  h('tr', null, [
    h(
      'td',
      { 'data-label': 'Name' },
      h(Link, { href: `${home}/workers/${id}`, class: 'row-link', 'data-row': true }, h(Text, null, name)),
    ),
    h('td', { 'data-label': 'Language' }, language),
    h('td', { 'data-label': 'Called at' }, inboundPhoneNumber ?? '–'),
    h('td', { 'data-label': 'Calls as' }, outboundPhoneNumber ?? '–'),
    h('td', { 'data-label': 'State' }, h(Badge, { tone: isActive ? 'good' : 'plain' }, isActive ? 'on' : 'off')),
  ])
