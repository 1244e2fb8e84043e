/**
 * Owns the page of an invitation: a new person sets name and password, one who is a user joins the account signed in. Looking at it uses nothing up,
 * because programs that check mail open links. docs/users.md "Invitations".
 */
import type { RequestInfo } from '../../model/listener.ts'
import { Problem } from '../../model/problem.ts'
import { UserName, type SignedIn } from '../../model/user.ts'
import { acceptAsNewUser, acceptAsUser, findInvitation, type FoundInvitation } from '../../store/invitations.ts'
import { newPasswordOf, passwordHint } from './account-page.ts'
import { createPageFetch } from './answer-page.ts'
import { html } from './html.ts'
import { noteUser } from './note-user.ts'
import { fieldOf, formOf, renderPage, seeOther } from './page.ts'
import { readPageForm, type PageForm } from './page-form.ts'
import type { PeopleParts } from './people-parts.ts'
import { signInUrl } from './return-to.ts'
import { afterSignIn } from './sign-in-page.ts'

export const invitationsPath = '/invitations/'

type Shown = {
  readonly status?: number
  readonly name?: string
  readonly error?: string
  readonly nameError?: string
  readonly passwordError?: string
}

export function createInvitationPage(parts: PeopleParts) {
  const { sql, clock, sessions, guard } = parts
  const tokenOf = ({ url }: Request): string => new URL(url).pathname.slice(invitationsPath.length)
  const invitationOf = async (request: Request): Promise<FoundInvitation> => {
    const found = await findInvitation(sql, tokenOf(request), clock.now())
    if (!found) throw gone()
    return found
  }
  return createPageFetch({
    GET: async (request) => {
      const invitation = await invitationOf(request)
      if (!invitation.hasUser) return showNew(parts, request, invitation, {})
      const signedIn = await sessions.find(request)
      return signedIn ? showJoin(request, invitation, signedIn) : seeOther(signInUrl(new URL(request.url).pathname))
    },
    POST: async (request, info) => {
      guard.requireOwnOrigin(request)
      const form = await readPageForm(request)
      const given = { request, form, info, token: tokenOf(request), invitation: await invitationOf(request) }
      return given.invitation.hasUser ? join(parts, given) : welcome(parts, given)
    },
  })
}

type Given = {
  readonly request: Request
  readonly info: RequestInfo
  readonly form: PageForm
  readonly token: string
  readonly invitation: FoundInvitation
}

async function join({ sql, clock, sessions, guard, audit }: PeopleParts, given: Given): Promise<Response> {
  const { request, form, token, invitation } = given
  const signedIn = await sessions.find(request)
  if (!signedIn) return seeOther(signInUrl(new URL(request.url).pathname))
  guard.checkCsrf(request, form, signedIn)
  const { userId, email } = signedIn
  if (email !== invitation.email) return showJoin(request, invitation, signedIn)
  if (!(await acceptAsUser(sql, { token, userId, email, now: clock.now() }))) throw gone()
  await noteUser(audit, 'user.accept_invitation', { userId, memberships: [invitation] })
  return seeOther(afterSignIn)
}

async function welcome(parts: PeopleParts, given: Given): Promise<Response> {
  const { sql, clock, newId, sessions, guard, audit, passwords } = parts
  const { request, form, token, invitation } = given
  const again = (shown: Shown) => showNew(parts, request, invitation, { name: form.one('name') ?? '', ...shown })
  if (!guard.isFromOwnPage(request, form))
    return again({ status: 403, error: 'This page was too old. Please try again.' })
  const name = UserName.safeParse(form.one('name') ?? '')
  const password = newPasswordOf(form.one('password'), invitation.email)
  if (!name.success) return again({ status: 400, nameError: 'A name is one line of 1 to 200 characters.' })
  if ('error' in password) return again({ status: 400, passwordError: password.error })
  const passwordHash = await passwords.hash(password.value)
  const userId = await acceptAsNewUser(sql, { token, name: name.data, passwordHash, newId, now: clock.now() })
  if (!userId) throw gone()
  await noteUser(audit, 'user.accept_invitation', { userId, memberships: [invitation] })
  const cookies = await sessions.begin(request, { userId, passwordHash })
  return seeOther(afterSignIn, cookies ?? [])
}

const gone = (): Problem =>
  new Problem('NOT_FOUND', 'This invitation is not good, or not any more. Ask whoever invited you for a new one.')

function showNew({ guard }: PeopleParts, request: Request, invitation: FoundInvitation, shown: Shown): Response {
  const { status = 200, name = '', error, nameError, passwordError } = shown
  const { csrf, cookies } = guard.tokenFor(request)
  const { accountName, role, email } = invitation
  const fields = html` <input type="email" name="email" value="${email}" autocomplete="username" hidden />
    ${fieldOf({ name: 'name', label: 'Your name', type: 'text', autocomplete: 'name', value: name, error: nameError, maxLength: 200 })}
    ${fieldOf({ name: 'password', label: 'Password', type: 'password', autocomplete: 'new-password', hint: passwordHint, error: passwordError })}
    <div class="actions"><button type="submit">Join</button></div>`
  const body = html` ${error !== undefined && html`<p class="notice error" role="alert">${error}</p>`}
    <p>You are invited to the account <strong>${accountName}</strong> as ${role}, with the address ${email}.</p>
    ${formOf({ action: new URL(request.url).pathname, csrf, fields })}`
  return renderPage({ title: 'Welcome', body, status, cookies })
}

function showJoin(request: Request, { accountName, role, email }: FoundInvitation, signedIn: SignedIn): Response {
  const path = new URL(request.url).pathname
  const isTheirs = signedIn.email === email
  const fields = html`<div class="actions"><button type="submit">Join</button></div>`
  const body = html` <p>${email} is invited to the account <strong>${accountName}</strong> as ${role}.</p>
    ${isTheirs ? formOf({ action: path, csrf: signedIn.csrf, fields }) : html`<p class="notice error" role="alert">You are signed in as ${signedIn.email}. <a href="${signInUrl(path)}">Sign in as ${email}</a> to join.</p>`}`
  return renderPage({ title: 'Invitation', body, status: isTheirs ? 200 : 403 })
}
