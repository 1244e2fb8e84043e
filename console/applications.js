/** Owns the applications that may act for users of the account: who allowed them what, and how that is taken back. */
import { h } from 'preact'
import { ask } from './ask.js'
import { AskedButton } from './confirm.js'
import { longTimeOf, timeOf, wordsOf } from './format.js'
import { Empty, Failure, Loading, Section, Table, Text } from './parts.js'
import { useHere } from './session.js'
import { useStretch } from './stretch.js'
import { useLoaded } from './use-loaded.js'

/** @typedef {import('./account-answers').OAuthGrant} OAuthGrant */

export function Applications() {
  const { api } = useHere()
  const { value, error, reload } = useLoaded(`${api}/grants`)
  const grants = /** @type {OAuthGrant[] | null} */ (value)
  return h(Section, { class: 'stack', id: 'applications', title: 'Applications of users' }, [
    h(Failure, { error, retry: reload }),
    grants === null
      ? !error && h(Loading, null)
      : grants.length === 0
        ? h(
            Empty,
            { title: 'No application yet' },
            `Give an MCP client the address ${location.origin}/mcp: it asks a user of the account to allow it, and stands here then.`,
          )
        : h(Found, { grants, changed: reload }),
  ])
}

/** @param {{ grants: OAuthGrant[], changed: () => void }} props */
function Found({ grants, changed }) {
  const { shown, pager } = useStretch(grants, 50)
  return [
    h(
      Table,
      {
        label: 'Applications of users',
        class: 'rows',
        head: ['Application', 'Of', 'May', 'Allowed', 'Last used', ''],
      },
      shown.map((grant) => h(Row, { key: grant.id, grant, changed })),
    ),
    pager,
  ]
}

/** @param {{ grant: OAuthGrant, changed: () => void }} props */
function Row({ grant, changed }) {
  const { api, isOwner } = useHere()
  const { id, clientName, redirectHost, userName, userEmail, scopes, workerName, createdAt, lastUsedAt } = grant
  return h('tr', null, [
    h('td', { 'data-label': 'Application' }, [
      h(Text, null, clientName),
      h('br', null),
      h('span', { class: 'soft' }, h(Text, null, redirectHost)),
    ]),
    h('td', { 'data-label': 'Of' }, h(Text, null, userName ?? userEmail)),
    h('td', { 'data-label': 'May' }, [
      scopes.map(wordsOf).join(', '),
      workerName !== undefined && [' of ', h(Text, null, workerName)],
    ]),
    h('td', { 'data-label': 'Allowed' }, h('time', { title: longTimeOf(createdAt) }, timeOf(createdAt))),
    h('td', { 'data-label': 'Last used' }, h('time', { title: longTimeOf(lastUsedAt) }, timeOf(lastUsedAt))),
    h('td', { class: 'number' }, [
      isOwner &&
        h(
          AskedButton,
          {
            label: 'Stop',
            class: 'quiet small',
            name: `Stop ${clientName} of ${userEmail}`,
            title: `Stop ${clientName}?`,
            action: 'Stop it',
            run: async () => {
              await ask(`${api}/grants/${encodeURIComponent(id)}`, { method: 'DELETE' })
              changed()
            },
          },
          `It may not act for ${userEmail} any more, at once. They may allow it again.`,
        ),
    ]),
  ])
}
