/** Owns signing in and out by pages. docs/users.md "Signing in". */
import type { RequestInfo } from '../../model/listener.ts'
import { Problem } from '../../model/problem.ts'
import { UserEmail, type SignedIn } from '../../model/user.ts'
import { listMemberships } from '../../store/memberships.ts'
import { createPageFetch } from './answer-page.ts'
import { html } from './html.ts'
import { noteRefusal, noteUser } from './note-user.ts'
import { fieldOf, formOf, noticeOf, renderPage, seeOther } from './page.ts'
import { readPageForm } from './page-form.ts'
import type { PeopleParts } from './people-parts.ts'
import { pathToReturnTo } from './return-to.ts'

type Shown = {
  readonly email?: string
  readonly error?: string
  readonly emailError?: string
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly signedIn?: SignedIn | null
}

export const afterSignIn = '/account'

export function createSignInPage(parts: PeopleParts) {
  const { guard, sessions } = parts
  return createPageFetch({
    GET: async (request) => {
      const returnTo = pathToReturnTo(new URL(request.url).searchParams.get('returnTo'))
      return show(parts, request, returnTo, { signedIn: await sessions.find(request) })
    },
    POST: async (request, info) => {
      guard.requireOwnOrigin(request)
      const form = await readPageForm(request)
      const returnTo = pathToReturnTo(form.one('returnTo'))
      const [email, password] = [form.one('email') ?? '', form.one('password') ?? '']
      if (!guard.isFromOwnPage(request, form))
        return show(parts, request, returnTo, { email, status: 403, error: 'This page was too old. Please try again.' })
      return signIn(parts, request, info, { email, password, returnTo })
    },
  })
}

type Tried = { readonly email: string; readonly password: string; readonly returnTo: string | null }

async function signIn(parts: PeopleParts, request: Request, info: RequestInfo, tried: Tried): Promise<Response> {
  const { checkPassword, sessions, audit, sql, log } = parts
  const { email, password, returnTo } = tried
  const again = (shown: Shown) => show(parts, request, returnTo, { email, ...shown })
  const read = UserEmail.safeParse(email)
  if (!read.success) return again({ status: 400, emailError: 'This is no e-mail address.' })
  try {
    const { user, isRight } = await checkPassword(read.data, password.normalize('NFKC'), info.remoteAddress)
    const cookies = user && isRight ? await sessions.begin(request, user) : null
    if (user && cookies) {
      const memberships = await listMemberships(sql, user.userId)
      await noteUser(audit, 'user.sign_in', { ...user, memberships })
      return seeOther(returnTo ?? afterSignIn, cookies)
    }
    if (user) {
      const refused = async () =>
        noteRefusal(audit, 'user.sign_in', { ...user, memberships: await listMemberships(sql, user.userId) })
      refused().catch((error: unknown) => log.warn('a failed sign-in was not noted', { userId: user.userId, error }))
    }
    log.info('a sign-in failed', { personal: { email: read.data, remoteAddress: info.remoteAddress } })
    // RFC 9110 section 15.5.2 asks for a challenge; no browser knows this one.
    return again({
      status: 401,
      error: 'E-mail address or password is wrong.',
      headers: { 'www-authenticate': 'Form' },
    })
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { status, message, retryAfterSeconds } = error
    return again({ status, error: message, headers: { 'retry-after': String(retryAfterSeconds ?? 5) } })
  }
}

function show({ guard }: PeopleParts, request: Request, returnTo: string | null, shown: Shown): Response {
  const { email = '', error, emailError, status = 200, headers = {}, signedIn } = shown
  const { csrf, cookies } = guard.tokenFor(request)
  const fields = html` ${returnTo !== null && html`<input type="hidden" name="returnTo" value="${returnTo}" />`}
    ${fieldOf({ name: 'email', label: 'E-mail address', type: 'email', autocomplete: 'username', value: email, error: emailError, maxLength: 254 })}
    ${fieldOf({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' })}
    <div class="actions"><button type="submit">Sign in</button></div>`
  const body = html` ${error !== undefined && noticeOf('error', error)}
    ${signedIn && html`<p>You are signed in as ${signedIn.email}. <a href="${returnTo ?? afterSignIn}">Go on</a>, or sign in as somebody else:</p>`}
    ${formOf({ action: '/sign-in', csrf, fields })}
    <p class="soft">
      No user yet, or the password forgotten? Whoever looks after your account can invite you, or set a new one.
    </p>`
  return renderPage({ title: 'Sign in', body, status, headers, cookies })
}

export function createSignOutPage({ guard, sessions, audit }: PeopleParts) {
  return createPageFetch({
    POST: async (request) => {
      guard.requireOwnOrigin(request)
      const form = await readPageForm(request)
      const signedIn = await sessions.find(request)
      if (signedIn) guard.checkCsrf(request, form, signedIn)
      const cookies = await sessions.end(request)
      if (signedIn) await noteUser(audit, 'user.sign_out', signedIn)
      return seeOther('/sign-in', cookies)
    },
  })
}
