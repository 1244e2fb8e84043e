/** Owns one webhook subscription: whether it works, and every delivery with its attempts. */
import { h } from 'preact'
import { ask } from './ask.js'
import { AskedButton } from './confirm.js'
import { Cursors, pageAddress } from './cursors.js'
import { longTimeOf, msOf, timeOf } from './format.js'
import { Awaited, Badge, Choice, Empty, Fact, Facts, Failure, Field, Loading, PageFrame, Table, Text } from './parts.js'
import { go, home, Link, placeWith, usePlace } from './router.js'
import { useHere } from './session.js'
import { useAction } from './use-action.js'
import { useLoaded } from './use-loaded.js'
import { stateOf } from './webhooks-page.js'

/** @typedef {import('./answers').Subscription} Subscription */
/** @typedef {import('./answers').Delivery} Delivery */

/** @param {{ id: string }} props */
export function WebhookPage({ id }) {
  const { api } = useHere()
  const address = `${api}/webhook-subscriptions/${id}`
  const { value, error, reload } = useLoaded(address)
  const subscription = /** @type {Subscription | null} */ (value)
  if (subscription === null) return h(PageFrame, { title: 'Webhook' }, h(Awaited, { error, reload }))
  const [tone, words] = stateOf(subscription)
  return h(
    PageFrame,
    {
      title: subscription.url,
      lead: [h(Badge, { tone }, words), ` ${subscription.eventType === '*' ? 'all events' : subscription.eventType}`],
      actions: h(Actions, { subscription, address, reload }),
    },
    [
      h(
        'section',
        { class: 'card', 'aria-label': 'The subscription' },
        h(Facts, { label: 'The subscription' }, [
          h(Fact, { name: 'Delivery' }, subscription.deliveryMode),
          h(Fact, { name: 'Time to answer' }, msOf(subscription.timeoutMs)),
          h(
            Fact,
            { name: 'Headers of yours' },
            Object.keys(subscription.headers).length === 0 ? 'none' : Object.keys(subscription.headers).join(', '),
          ),
          subscription.failingSince !== undefined &&
            h(Fact, { name: 'Failing since' }, longTimeOf(subscription.failingSince)),
          h(Fact, { name: 'Made' }, longTimeOf(subscription.createdAt)),
          h(Fact, { name: 'Id' }, h('code', null, subscription.id)),
        ]),
      ),
      h(Deliveries, { address }),
    ],
  )
}

/** @param {{ subscription: Subscription, address: string, reload: () => void }} props */
function Actions({ subscription, address, reload }) {
  const { mayChange } = useHere()
  const { isRunning, error, done, run } = useAction()
  if (!mayChange) return null
  const test = async () => {
    const answer = /** @type {{ delivered: boolean, statusCode?: number, error?: string }} */ (
      await ask(`${address}/test`, { method: 'POST' })
    )
    if (!answer.delivered)
      throw new Error(`The test did not arrive: ${answer.error ?? `it was answered ${answer.statusCode}`}`)
  }
  const change = async () => {
    await ask(address, { method: 'PATCH', json: { enabled: !subscription.enabled } })
    reload()
  }
  return [
    h('button', { type: 'button', disabled: isRunning, onClick: () => run(test, 'It arrived.') }, 'Send a test'),
    h(
      'button',
      { type: 'button', class: 'quiet', disabled: isRunning, onClick: () => run(change) },
      subscription.enabled ? 'Switch off' : 'Switch on',
    ),
    h(
      AskedButton,
      {
        label: 'Delete',
        title: 'Delete this subscription?',
        action: 'Delete it',
        run: async () => {
          await ask(address, { method: 'DELETE' })
          go(`${home}/webhooks`)
        },
      },
      'Its receiver is told of nothing any more, and its deliveries are forgotten.',
    ),
    done !== null && h('span', { class: 'done', role: 'status' }, done),
    h(Failure, { error }),
  ]
}

const statuses = /** @type {const} */ ([
  ['', 'Any state'],
  ['pending', 'Pending'],
  ['delivered', 'Delivered'],
  ['exhausted', 'Given up'],
])
/** @type {Record<string, readonly [tone: string, words: string]>} */
const states = { pending: ['warn', 'pending'], delivered: ['good', 'delivered'], exhausted: ['bad', 'given up'] }

/** @param {{ address: string }} props */
function Deliveries({ address }) {
  const { query } = usePlace()
  const { value, error, reload } = useLoaded(pageAddress(`${address}/deliveries`, query, ['status', 'callId']), {
    every: 5_000,
  })
  const page = /** @type {import('./answers').Page<Delivery> | null} */ (value)
  const callId = query.get('callId')
  return h('section', { class: 'stack', 'aria-labelledby': 'deliveries' }, [
    h('div', { class: 'filters' }, [
      h('h2', { id: 'deliveries' }, 'Deliveries'),
      h(
        Field,
        { label: 'State' },
        h(Choice, {
          value: query.get('status') ?? '',
          options: statuses,
          onChange: (status) => go(placeWith(query, { status, cursor: null })),
        }),
      ),
    ]),
    callId !== null &&
      h('p', null, [
        'Of ',
        h(Link, { href: `${home}/calls/${callId}` }, 'one call'),
        ' only. ',
        h(Link, { href: placeWith(query, { callId: null, cursor: null }) }, 'All deliveries'),
      ]),
    h(Failure, { error, retry: reload }),
    page === null
      ? !error && h(Loading, null)
      : page.data.length === 0
        ? h(NoneSent, { isFiltered: ['status', 'callId', 'cursor'].some((name) => query.has(name)) })
        : [
            h(
              Table,
              { label: 'Deliveries', class: 'rows', head: ['Event', 'Call', 'State', 'Attempts', ''] },
              page.data.map((delivery) => h(Row, { key: delivery.id, delivery, address, reload })),
            ),
            h(Cursors, { query, next: page.nextCursor }),
          ],
  ])
}

/** @param {{ isFiltered: boolean }} props */
const NoneSent = ({ isFiltered }) =>
  isFiltered
    ? h(
        Empty,
        {
          title: 'No delivery matches',
          action: h(Link, { href: location.pathname, class: 'button' }, 'All deliveries'),
        },
        'Deliveries are forgotten a while after they have arrived.',
      )
    : h(
        Empty,
        { title: 'Nothing was sent yet' },
        'A test that is sent is not listed here: deliveries come with the next call.',
      )

/** @param {{ delivery: Delivery, address: string, reload: () => void }} props */
function Row({ delivery, address, reload }) {
  const { mayChange } = useHere()
  const { isRunning, error, run } = useAction()
  const [tone, words] = states[delivery.status] ?? ['plain', delivery.status]
  const resend = async () => {
    await ask(`${address}/deliveries/${delivery.id}/resend`, { method: 'POST' })
    reload()
  }
  return h('tr', null, [
    h('td', { 'data-label': 'Event' }, [
      delivery.eventType,
      h('br', null),
      h('time', { class: 'soft', title: longTimeOf(delivery.eventAt) }, timeOf(delivery.eventAt)),
    ]),
    h(
      'td',
      { 'data-label': 'Call' },
      h(Link, { href: `${home}/calls/${delivery.callId}` }, h('code', null, delivery.callId.slice(0, 13))),
    ),
    h('td', { 'data-label': 'State' }, h(Badge, { tone }, words)),
    h(
      'td',
      { 'data-label': 'Attempts' },
      h('details', null, [
        h('summary', null, delivery.attempts.length === 1 ? '1 attempt' : `${delivery.attempts.length} attempts`),
        h(
          'ol',
          { class: 'plain-list' },
          delivery.attempts.map(({ attempt, at, durationMs, statusCode, error: failure, responseExcerpt }) =>
            h('li', { key: attempt }, [
              `${timeOf(at)}: ${statusCode ?? failure ?? 'no answer'} in ${msOf(durationMs)}`,
              responseExcerpt && h('pre', { class: 'excerpt' }, h(Text, null, responseExcerpt)),
            ]),
          ),
        ),
      ]),
    ),
    h('td', { class: 'number' }, [
      mayChange &&
        delivery.status === 'exhausted' &&
        h(
          'button',
          { type: 'button', class: 'quiet small', disabled: isRunning, onClick: () => run(resend) },
          'Send again',
        ),
      h(Failure, { error }),
    ]),
  ])
}
