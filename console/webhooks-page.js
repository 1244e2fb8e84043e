/** Owns the list of webhook subscriptions, and where a new one is made. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { ask } from './ask.js'
import { Form } from './form.js'
import { Badge, Failure, Loading, NoneYet, PageFrame, Section, Table, Text } from './parts.js'
import { home, Link } from './router.js'
import { useHere } from './session.js'
import { useStretch } from './stretch.js'
import { useLoaded } from './use-loaded.js'
import { useWorkerNames, useWorkers } from './worker-names.js'

/** @typedef {import('./answers').Subscription} Subscription */

const eventTypes = /** @type {const} */ ([
  '*',
  'call.ended',
  'call.status_update',
  'call.transcript',
  'call.worker_request',
])

/** @param {Subscription} subscription @returns {readonly [tone: string, words: string]} */
export function stateOf({ enabled, disabledReason, failingSince }) {
  if (disabledReason)
    return ['bad', disabledReason === 'gone' ? 'off: its endpoint is gone' : 'off: it failed for three days']
  if (!enabled) return ['plain', 'off']
  return failingSince ? ['warn', 'failing'] : ['good', 'on']
}

export function WebhooksPage() {
  const { api, mayChange } = useHere()
  const { value, error, reload } = useLoaded(`${api}/webhook-subscriptions`)
  const subscriptions = /** @type {Subscription[] | null} */ (value)
  const [made, setMade] = useState(/** @type {Subscription | null} */ (null))
  return h(PageFrame, { title: 'Webhooks', lead: 'Where events of calls are sent, and what became of each.' }, [
    h(Failure, { error, retry: reload }),
    made &&
      h('div', { class: 'notice good', role: 'status' }, [
        h('p', null, 'It is made. Its signing secret is shown this once:'),
        h('p', null, h('code', null, made.signingSecret)),
      ]),
    subscriptions === null ? !error && h(Loading, null) : h(Found, { subscriptions }),
    mayChange &&
      h(Section, { id: 'new', title: 'Subscribe' }, [
        h(NewSubscription, {
          made: (one) => {
            setMade(one)
            reload()
          },
        }),
      ]),
  ])
}

/** @param {{ subscriptions: Subscription[] }} props */
function Found({ subscriptions }) {
  const nameOf = useWorkerNames()
  const { shown, pager } = useStretch(subscriptions, 50)
  if (subscriptions.length === 0)
    return h(
      NoneYet,
      { title: 'Nobody is told of anything' },
      'Subscribe a receiver below. npm run admin -- webhook listen starts one on your machine that prints every event.',
    )
  const table = h(
    Table,
    { label: 'Subscriptions', class: 'rows', head: ['Receiver', 'Events', 'Worker', 'State'] },
    shown.map((subscription) => {
      const [tone, words] = stateOf(subscription)
      return h('tr', { key: subscription.id }, [
        h(
          'td',
          { 'data-label': 'Receiver' },
          h(
            Link,
            { href: `${home}/webhooks/${subscription.id}`, class: 'row-link', 'data-row': true },
            h(Text, null, subscription.url),
          ),
        ),
        h('td', { 'data-label': 'Events' }, subscription.eventType === '*' ? 'all' : subscription.eventType),
        h(
          'td',
          { 'data-label': 'Worker' },
          subscription.workerId === null ? 'all' : h(Text, null, nameOf(subscription.workerId)),
        ),
        h('td', { 'data-label': 'State' }, h(Badge, { tone }, words)),
      ])
    }),
  )
  return [table, pager]
}

/** @param {{ made: (subscription: Subscription) => void }} props */
function NewSubscription({ made }) {
  const { api } = useHere()
  const workers = useWorkers()
  return h(Form, {
    action: 'Subscribe',
    clears: true,
    fields: [
      { name: 'url', label: 'Address', kind: 'url', required: true, hint: 'https://…' },
      {
        name: 'eventType',
        label: 'Events',
        kind: 'choice',
        value: 'call.ended',
        options: eventTypes.map((type) => /** @type {const} */ ([type, type === '*' ? 'all events' : type])),
      },
      {
        name: 'workerId',
        label: 'Worker',
        kind: 'choice',
        options: [['', 'all workers'], ...workers.map(({ id, name }) => /** @type {const} */ ([id, name]))],
      },
    ],
    save: async ({ fields: { url, eventType, workerId } }) =>
      made(
        /** @type {Subscription} */ (
          await ask(`${api}/webhook-subscriptions`, {
            method: 'POST',
            json: { url, eventType, ...(workerId && { workerId }) },
          })
        ),
      ),
  })
}
