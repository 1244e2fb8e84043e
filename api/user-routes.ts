/** Owns the routes of users, the people who sign in, and of invitations. docs/contract/rest.md "Users". */
import { notFound } from '../model/problem.ts'
import { createRoute, z } from '@hono/zod-openapi'
import {
  Invitation,
  InvitationRequest,
  scopesOfRole,
  toInvitation,
  toUser,
  User,
  UserChange,
  UserEmail,
} from '../model/user.ts'
import { publicUrlOf } from '../net/public-url.ts'
import { invite, listInvitations, withdrawInvitation } from '../store/invitations.ts'
import { changeRole, findMember, listMembers, removeMember } from '../store/memberships.ts'
import { idOf } from './authenticate.ts'
import type { Api, ApiDeps } from './deps.ts'
import { existing } from './existing.ts'
import { requireWithin } from './guarded-routes.ts'
import { answerOf, bodyOf, named, needs, noContentOf, ownersOnly, refusing, security } from './openapi.ts'
import { readJson } from './read-json.ts'

const path = '/v1/accounts/{accountId}/users'
const invitationsPath = '/v1/accounts/{accountId}/invitations'
const shared = { security, tags: ['Users'] }
const withBody = { ...shared, middleware: [readJson] }
const accountParams = z.object({ accountId: z.string() })
const userParams = z.object({ accountId: z.string(), userId: z.string() })
const namedUser = named('User', User)
const namedInvitation = named('Invitation', Invitation)

const list = createRoute({
  ...shared,
  method: 'get',
  path,
  operationId: 'listUsers',
  ...needs('read'),
  summary: 'List the users of the account',
  request: { params: accountParams },
  responses: answerOf(z.array(namedUser), 'All users of the account.'),
})

const change = createRoute({
  ...withBody,
  method: 'patch',
  path: `${path}/{userId}`,
  operationId: 'changeUser',
  ...needs('manage'),
  ...ownersOnly,
  summary: 'Give a user another role',
  description: 'At once, also in what they have granted. The last owner of the account stays one (409).',
  ...refusing('CONFLICT'),
  request: { params: userParams, body: bodyOf(named('UserChange', UserChange), { role: 'operator' }) },
  responses: answerOf(namedUser, 'The user.'),
})

const remove = createRoute({
  ...shared,
  method: 'delete',
  path: `${path}/{userId}`,
  operationId: 'removeUser',
  ...needs('manage'),
  ...ownersOnly,
  summary: 'Remove a user from the account',
  description:
    'At once, with what they have granted. Who belongs to no other account is removed with all that is personal. The last owner of the account stays (409).',
  ...refusing('CONFLICT'),
  request: { params: userParams },
  responses: noContentOf('The user is no user of the account any more.'),
})

const listOpen = createRoute({
  ...shared,
  method: 'get',
  path: invitationsPath,
  operationId: 'listInvitations',
  ...needs('read'),
  summary: 'List the open invitations of the account',
  request: { params: accountParams },
  responses: answerOf(z.array(namedInvitation), 'Those that nobody has accepted yet. None shows its link.'),
})

const create = createRoute({
  ...withBody,
  method: 'post',
  path: invitationsPath,
  operationId: 'createInvitation',
  ...needs('manage'),
  ...ownersOnly,
  summary: 'Invite a person to the account',
  description:
    'The service sends no mail: give the person the link. A later invitation of the same address takes the place of the former one.',
  ...refusing('CONFLICT'),
  request: {
    params: accountParams,
    body: bodyOf(named('InvitationRequest', InvitationRequest), { email: 'ada@example.com', role: 'operator' }),
  },
  responses: answerOf(namedInvitation, 'The invitation, with its link, shown this once.'),
})

const withdraw = createRoute({
  ...shared,
  method: 'delete',
  path: `${invitationsPath}/{invitationId}`,
  operationId: 'withdrawInvitation',
  ...needs('manage'),
  ...ownersOnly,
  summary: 'Withdraw an invitation',
  request: { params: z.object({ accountId: z.string(), invitationId: z.string() }) },
  responses: noContentOf('Its link is good no more.'),
})

export function addUserRoutes(app: Api, { sql, clock, newId, publicUrl }: ApiDeps): void {
  app.openapi(list, async (c) => c.json((await listMembers(sql, c.get('accountId'))).map(toUser), 200))
  app.openapi(change, async (c) => {
    const [accountId, userId] = [c.get('accountId'), idOf<'user'>(c.req.valid('param').userId)]
    const { role } = c.req.valid('json')
    // Nobody gets more by a key than it can do itself.
    requireWithin(c.get('scopes'), scopesOfRole(role))
    if (!(await changeRole(sql, { accountId, userId, role }))) throw notFound()
    return c.json(toUser(existing(await findMember(sql, accountId, userId))), 200)
  })
  app.openapi(remove, async (c) => {
    const [accountId, userId] = [c.get('accountId'), idOf<'user'>(c.req.valid('param').userId)]
    if (!(await removeMember(sql, { accountId, userId }))) throw notFound()
    return c.body(null, 204)
  })
  app.openapi(listOpen, async (c) =>
    c.json((await listInvitations(sql, c.get('accountId'), clock.now())).map(toInvitation), 200),
  )
  app.openapi(create, async (c) => {
    const [accountId, now] = [c.get('accountId'), clock.now()]
    const { email, role } = c.req.valid('json')
    requireWithin(c.get('scopes'), scopesOfRole(role))
    const given = { accountId, email: UserEmail.parse(email), role, newId, now }
    const { invitation, token } = await invite(sql, given)
    const url = `${publicUrlOf(publicUrl, c.req.raw)}/invitations/${token}`
    return c.json({ ...toInvitation(invitation), url }, 200)
  })
  app.openapi(withdraw, async (c) => {
    const [accountId, id] = [c.get('accountId'), idOf<'invitation'>(c.req.valid('param').invitationId)]
    if (!(await withdrawInvitation(sql, accountId, { id }))) throw notFound()
    return c.body(null, 204)
  })
}
