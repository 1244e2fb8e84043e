/** Owns the trunks: whether each can be called and can call, and which calls were refused, by which rule and what mends it. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { ask } from './ask.js'
import { AskedButton } from './confirm.js'
import { Cursors, pageAddress } from './cursors.js'
import { longTimeOf, timeOf, wordsOf } from './format.js'
import { Form } from './form.js'
import { Badge, Failure, Loading, NoneYet, PageFrame, Section, Table, Text } from './parts.js'
import { usePlace } from './router.js'
import { useHere } from './session.js'
import { useAction } from './use-action.js'
import { useStretch } from './stretch.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {import('./answers').Trunk} Trunk */

export function TrunksPage() {
  const { api, mayChange } = useHere()
  const { value, error, reload } = useLoaded(`${api}/trunks`)
  const trunks = /** @type {Trunk[] | null} */ (value)
  return h(PageFrame, { title: 'Trunks', lead: 'The ways to and from the telephone network.' }, [
    h(Failure, { error, retry: reload }),
    trunks === null
      ? !error && h(Loading, null)
      : trunks.length === 0
        ? h(
            NoneYet,
            { title: 'No trunk yet', action: h('a', { class: 'button', href: '/docs' }, 'Every setting of a trunk') },
            'Make one below with the address of your carrier or exchange, or with everything it needs by POST …/trunks.',
          )
        : h(Found, { trunks, changed: reload }),
    h(Refusals, null),
    mayChange && h(Section, { id: 'new', title: 'Add a trunk' }, [h(NewTrunk, { made: reload })]),
  ])
}

/** Each asks for its state now and then. @param {{ trunks: Trunk[], changed: () => void }} props */
function Found({ trunks, changed }) {
  const { shown, pager } = useStretch(trunks, 12)
  return [
    h(
      'div',
      { class: 'cards' },
      shown.map((trunk) => h(TrunkCard, { key: trunk.id, trunk, changed })),
    ),
    pager,
  ]
}

/** @type {Record<string, string>} */
const registrations = { none: 'plain', registering: 'warn', registered: 'good', failed: 'bad' }

/** @type {Record<string, string>} */
const directions = { both: 'takes and places calls', inbound: 'takes calls', outbound: 'places calls' }

/** @param {{ trunk: Trunk, changed: () => void }} props */
function TrunkCard({ trunk, changed }) {
  const { api, mayChange } = useHere()
  const { value, error } = useLoaded(`${api}/trunks/${trunk.id}/state`, { every: 10_000 })
  const state = /** @type {import('./answers').TrunkState | null} */ (value)
  const [failure, setFailure] = useState(/** @type {Error | null} */ (null))
  const toggle = () =>
    ask(`${api}/trunks/${trunk.id}`, { method: 'PATCH', json: { isActive: !trunk.isActive } }).then(changed, setFailure)
  return h('section', { class: 'card', 'aria-label': trunk.name }, [
    h('div', { class: 'card-head' }, [
      h('h2', null, h(Text, null, trunk.name)),
      h(Badge, { tone: trunk.isActive ? 'good' : 'plain' }, trunk.isActive ? 'on' : 'off'),
      mayChange &&
        h(
          'button',
          { type: 'button', class: 'quiet small', onClick: toggle },
          trunk.isActive ? 'Switch off' : 'Switch on',
        ),
      mayChange &&
        h(
          AskedButton,
          {
            label: 'Delete',
            class: 'danger small',
            name: `Delete ${trunk.name}`,
            title: `Delete ${trunk.name}?`,
            action: 'Delete it',
            run: async () => {
              await ask(`${api}/trunks/${trunk.id}`, { method: 'DELETE' })
              changed()
            },
          },
          'No call comes or goes over it any more, and its registration ends.',
        ),
    ]),
    h(Failure, { error: error ?? failure }),
    h('p', { class: 'soft' }, [
      directions[trunk.direction],
      trunk.username && [', as ', h(Text, null, trunk.username)],
    ]),
    state &&
      state.registration !== 'none' &&
      h('p', null, [
        h(Badge, { tone: registrations[state.registration] ?? 'plain' }, wordsOf(state.registration)),
        ' ',
        h(Text, { class: 'soft' }, state.registrationDetails),
      ]),
    state &&
      h(
        'ul',
        { class: 'plain-list' },
        state.gateways.map(({ host, port, reachable, details, checkedAt }) =>
          h('li', { key: `${host}:${port}` }, [
            h(
              Badge,
              { tone: reachable === null ? 'plain' : reachable ? 'good' : 'bad' },
              reachable === null ? 'not asked yet' : reachable ? 'answers' : 'does not answer',
            ),
            ' ',
            h('code', null, port === null ? host : `${host}:${port}`),
            ' ',
            h('span', { class: 'soft' }, [details && h(Text, null, details), checkedAt && ` ${timeOf(checkedAt)}`]),
          ]),
        ),
      ),
    state?.realms?.map(
      ({ host, refused }) =>
        refused !== null &&
        h('p', { class: 'notice warn', key: host }, [h('strong', null, host), ' ', h(Text, null, refused)]),
    ),
    mayChange && h(Examination, { trunk }),
  ])
}

/** @type {Record<string, string>} */
const verdicts = { passed: 'good', warned: 'warn', failed: 'bad' }

/** What its settings say together, and what its gateways answer now. @param {{ trunk: Trunk }} props */
function Examination({ trunk }) {
  const { account } = useHere()
  const [checks, setChecks] = useState(/** @type {import('./answers').TrunkCheck[] | null} */ (null))
  const { run, isRunning, error } = useAction()
  const examine = () =>
    run(async () => {
      const address = `/console/accounts/${account.id}/trunks/${trunk.id}/examination`
      const answer = await ask(address, { method: 'POST' })
      setChecks(/** @type {{ checks: import('./answers').TrunkCheck[] }} */ (answer).checks)
    })
  const failed = checks?.filter(({ verdict }) => verdict === 'failed').length ?? 0
  return h('div', { class: 'stack' }, [
    h('div', { class: 'actions' }, [
      h(
        'button',
        { type: 'button', class: 'quiet', disabled: isRunning, onClick: examine },
        isRunning ? 'Examining …' : 'Examine',
      ),
      h('span', { role: 'status', class: 'soft' }, [
        checks !== null && !isRunning && (failed === 0 ? 'The trunk is sound.' : `${failed} of it needs mending.`),
      ]),
    ]),
    h(Failure, { error }),
    checks !== null &&
      h(
        'ul',
        { class: 'plain-list', 'aria-label': 'What was looked at' },
        checks.map(({ name, verdict, expected, got, mend }) =>
          h('li', { key: name }, [
            h(Badge, { tone: verdicts[verdict] ?? 'plain' }, verdict),
            ' ',
            h(Text, null, name),
            ' ',
            h(Text, { class: 'soft' }, got),
            verdict !== 'passed' && h('p', { class: 'hint' }, h(Text, null, `Expected: ${expected}. ${mend ?? ''}`)),
          ]),
        ),
      ),
  ])
}

function Refusals() {
  const { api } = useHere()
  const { query } = usePlace()
  const { value, error, reload } = useLoaded(pageAddress(`${api}/call-refusals`, query, []))
  const page = /** @type {import('./answers').Page<import('./answers').CallRefusal> | null} */ (value)
  return h(Section, { class: 'stack', id: 'refusals', title: 'Calls that were refused' }, [
    h(Failure, { error, retry: reload }),
    page === null
      ? !error && h(Loading, null)
      : page.data.length === 0
        ? h(
            'p',
            { class: 'soft' },
            'None lately. A call that does not come or go stands here with the rule that refused it.',
          )
        : [
            h(
              Table,
              { label: 'Refused calls', class: 'rows', head: ['When', 'From', 'To', 'Rule', 'What to do'] },
              page.data.map((refusal) => h(RefusalRow, { key: refusal.id, refusal })),
            ),
            h(Cursors, { query, next: page.nextCursor }),
          ],
  ])
}

/** @param {{ refusal: import('./answers').CallRefusal }} props */
const RefusalRow = ({ refusal: { lastAt, direction, calling, called, address, reason, count, details, sipStatus } }) =>
  h('tr', null, [
    h('td', { 'data-label': 'When' }, h('time', { title: longTimeOf(lastAt) }, timeOf(lastAt))),
    h('td', { 'data-label': 'From' }, [
      h(Text, null, calling ?? '–'),
      address !== null && h('span', { class: 'soft' }, [' ', h(Text, null, address)]),
    ]),
    h('td', { 'data-label': 'To' }, h(Text, null, called ?? '–')),
    h('td', { 'data-label': 'Rule' }, [
      h(Badge, { tone: 'warn' }, wordsOf(reason)),
      h(
        'span',
        { class: 'soft' },
        ` ${direction}${sipStatus === null ? '' : `, ${sipStatus}`}${count > 1 ? `, ${count} times` : ''}`,
      ),
    ]),
    h('td', { 'data-label': 'What to do', class: 'said' }, h(Text, null, details)),
  ])

/** @param {{ made: () => void }} props */
function NewTrunk({ made }) {
  const { api } = useHere()
  return h(Form, {
    action: 'Add it',
    clears: true,
    done: 'It is added.',
    fields: [
      { name: 'name', label: 'Name', required: true },
      {
        name: 'direction',
        label: 'Direction',
        kind: 'choice',
        value: 'both',
        options: [
          ['both', 'both'],
          ['inbound', 'inbound'],
          ['outbound', 'outbound'],
        ],
      },
      { name: 'host', label: 'Gateway', required: true, hint: 'Host name or address of the carrier or exchange' },
      { name: 'port', label: 'Port', kind: 'number', hint: 'Empty: as DNS says, else 5060' },
      {
        name: 'transport',
        label: 'Transport',
        kind: 'choice',
        value: 'udp',
        options: [
          ['udp', 'UDP'],
          ['tcp', 'TCP'],
          ['tls', 'TLS'],
        ],
      },
      { name: 'username', label: 'User' },
      { name: 'password', label: 'Password', kind: 'password' },
      { name: 'register', label: 'Register there', kind: 'checkbox' },
    ],
    save: async ({ fields: { name, direction, host, port, transport, username, password }, checks }) => {
      const json = {
        name,
        direction,
        gateways: [{ host, transport, ...(port && { port: Number(port) }) }],
        allowedAddresses: [host],
        ...(username && { username }),
        ...(password && { password }),
        ...(checks['register'] && { register: true }),
      }
      await ask(`${api}/trunks`, { method: 'POST', json })
      made()
    },
  })
}
