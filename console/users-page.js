/** Owns the users of the account: who may sign in, as what, and who is invited. */
import { h } from 'preact'
import { useState } from 'preact/hooks'
import { ask } from './ask.js'
import { AskedButton } from './confirm.js'
import { longTimeOf, timeOf } from './format.js'
import { Form } from './form.js'
import { Choice, Failure, Loading, PageFrame, Section, Table, Text } from './parts.js'
import { useHere } from './session.js'
import { useAction } from './use-action.js'
import { useLoaded } from './use-loaded.js'
import { useStretch } from './stretch.js'

/** @typedef {import('./answers').User} User */
/** @typedef {import('./answers').Invitation} Invitation */

const roles = /** @type {const} */ ([
  ['viewer', 'viewer: looks'],
  ['operator', 'operator: changes'],
  ['owner', 'owner: keys and users too'],
])

export function UsersPage() {
  const { api, isOwner } = useHere()
  const users = useLoaded(`${api}/users`)
  const invited = useLoaded(`${api}/invitations`)
  const [made, setMade] = useState(/** @type {Invitation | null} */ (null))
  const people = /** @type {User[] | null} */ (users.value)
  const open = /** @type {Invitation[] | null} */ (invited.value)
  const shownPeople = useStretch(people ?? [], 50)
  const shownOpen = useStretch(open ?? [], 50)
  const invite = async (/** @type {import('./form.js').Filled} */ { fields: { email, role } }) => {
    setMade(/** @type {Invitation} */ (await ask(`${api}/invitations`, { method: 'POST', json: { email, role } })))
    invited.reload()
  }
  return h(PageFrame, { title: 'Users', lead: 'People who sign in to this account.' }, [
    h(Failure, { error: users.error ?? invited.error, retry: users.reload }),
    made &&
      h('div', { class: 'notice good', role: 'status' }, [
        h('p', null, [
          'Give this link to ',
          h(Text, null, made.email),
          '. It is shown this once, and good for a week:',
        ]),
        h('p', null, h('code', null, made.url)),
      ]),
    people === null
      ? !users.error && h(Loading, null)
      : h(
          Table,
          { label: 'Users', class: 'rows', head: ['Who', 'Role', 'Last sign-in', ''] },
          shownPeople.shown.map((user) => h(Row, { key: user.id, user, changed: users.reload })),
        ),
    shownPeople.pager,
    open !== null &&
      open.length > 0 &&
      h(
        Table,
        { label: 'Open invitations', class: 'rows', head: ['Invited', 'Role', 'Good until', ''] },
        shownOpen.shown.map((one) => h(InvitedRow, { key: one.id, invitation: one, changed: invited.reload })),
      ),
    shownOpen.pager,
    isOwner
      ? h(Section, { id: 'invite', title: 'Invite somebody' }, [
          h(Form, {
            action: 'Make a link',
            clears: true,
            fields: [
              { name: 'email', label: 'E-mail address', kind: 'email', required: true },
              { name: 'role', label: 'Role', kind: 'choice', value: 'operator', options: roles },
            ],
            save: invite,
          }),
        ])
      : h('p', { class: 'hint' }, 'Owners of the account invite people and give roles.'),
  ])
}

/** @param {{ user: User, changed: () => void }} props */
function Row({ user, changed }) {
  const { api, isOwner, session } = useHere()
  const { error, run } = useAction()
  const give = (/** @type {string} */ role) =>
    run(async () => {
      await ask(`${api}/users/${user.id}`, { method: 'PATCH', json: { role } })
      changed()
    })
  return h('tr', null, [
    h('td', { 'data-label': 'Who' }, [
      h(Text, null, user.name ?? user.email),
      user.name !== undefined && h('span', { class: 'soft' }, [' ', h(Text, null, user.email)]),
      user.id === session.user.id && h('span', { class: 'soft' }, ' (you)'),
    ]),
    h('td', { 'data-label': 'Role' }, [
      isOwner
        ? h(Choice, { label: `Role of ${user.email}`, value: user.role, options: roles, onChange: give })
        : user.role,
      h(Failure, { error }),
    ]),
    h(
      'td',
      { 'data-label': 'Last sign-in' },
      h('time', { title: longTimeOf(user.lastSignInAt) }, timeOf(user.lastSignInAt)),
    ),
    h('td', { class: 'number' }, [
      isOwner &&
        h(
          AskedButton,
          {
            label: 'Remove',
            class: 'quiet small',
            name: `Remove ${user.email}`,
            title: `Remove ${user.email}?`,
            action: 'Remove',
            run: async () => {
              await ask(`${api}/users/${user.id}`, { method: 'DELETE' })
              changed()
            },
          },
          'They lose this account at once, with what they have granted to applications.',
        ),
    ]),
  ])
}

/** @param {{ invitation: Invitation, changed: () => void }} props */
function InvitedRow({ invitation: { id, email, role, expiresAt }, changed }) {
  const { api, isOwner } = useHere()
  const { error, run } = useAction()
  const withdraw = () =>
    run(async () => {
      await ask(`${api}/invitations/${id}`, { method: 'DELETE' })
      changed()
    })
  return h('tr', null, [
    h('td', { 'data-label': 'Invited' }, h(Text, null, email)),
    h('td', { 'data-label': 'Role' }, role),
    h('td', { 'data-label': 'Good until' }, longTimeOf(expiresAt)),
    h('td', { class: 'number' }, [
      isOwner &&
        h(
          'button',
          {
            type: 'button',
            class: 'quiet small',
            onClick: withdraw,
            'aria-label': `Withdraw the invitation of ${email}`,
          },
          'Withdraw',
        ),
      h(Failure, { error }),
    ]),
  ])
}
