/** Owns the page where a person sees who they are here, and changes their password. docs/users.md. */
import type { RequestInfo } from '../../model/listener.ts'
import { Problem } from '../../model/problem.ts'
import { isGivenAway, Password, type SignedIn } from '../../model/user.ts'
import { changePassword } from '../../store/users.ts'
import { createPageFetch } from './answer-page.ts'
import { html, type Html } from './html.ts'
import { noteRefusal, noteUser } from './note-user.ts'
import { fieldOf, formOf, noticeOf, renderPage, seeOther } from './page.ts'
import { readPageForm, type PageForm } from './page-form.ts'
import type { PeopleParts } from './people-parts.ts'
import { signInUrl } from './return-to.ts'

export function createAccountPage({ sessions }: PeopleParts) {
  return createPageFetch({
    GET: async (request) => {
      const signedIn = await sessions.find(request)
      if (!signedIn) return seeOther(signInUrl('/account'))
      const isChanged = new URL(request.url).searchParams.get('done') === 'password'
      return show(signedIn, { notice: isChanged && noticeOf('success', changed) })
    },
  })
}

const changed = 'Your password is changed, and every other browser is signed out.'

export function createPasswordPage(parts: PeopleParts) {
  const { sessions, guard } = parts
  return createPageFetch({
    POST: async (request, info) => {
      const signedIn = await sessions.find(request)
      if (!signedIn) return seeOther(signInUrl('/account'))
      const form = await readPageForm(request)
      guard.checkCsrf(request, form, signedIn)
      return change(parts, request, info, { signedIn, form })
    },
  })
}

type Change = { readonly signedIn: SignedIn; readonly form: PageForm }

async function change(parts: PeopleParts, request: Request, info: RequestInfo, given: Change): Promise<Response> {
  const { checkPassword, passwords, sessions, audit, sql, clock } = parts
  const { signedIn, form } = given
  const password = newPasswordOf(form.one('new'), signedIn.email)
  if ('error' in password) return show(signedIn, { status: 400, newError: password.error })
  try {
    const current = (form.one('current') ?? '').normalize('NFKC')
    const { user, isRight } = await checkPassword(signedIn.email, current, info.remoteAddress)
    if (!user || !isRight) {
      noteRefusal(audit, 'user.change_password', signedIn)
      return show(signedIn, { status: 403, currentError: 'This is not your password.' })
    }
    const { userId, passwordHash: formerHash } = user
    const passwordHash = await passwords.hash(password.value)
    const isChanged = await changePassword(sql, { userId, passwordHash, formerHash, now: clock.now() })
    const cookies = isChanged ? await sessions.begin(request, { userId, passwordHash }) : null
    if (!cookies) return seeOther(signInUrl('/account'))
    await noteUser(audit, 'user.change_password', signedIn)
    return seeOther('/account?done=password', cookies)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { status, message, retryAfterSeconds } = error
    const headers = { 'retry-after': String(retryAfterSeconds ?? 5) }
    return show(signedIn, { status, headers, notice: noticeOf('error', message) })
  }
}

/** Of a form where a password is chosen. */
export function newPasswordOf(
  given: string | null,
  email: string,
): { readonly value: string } | { readonly error: string } {
  const read = Password.safeParse(given ?? '')
  if (!read.success) return { error: `A password ${read.error.issues[0]?.message ?? 'is missing'}.` }
  if (isGivenAway(read.data, email)) return { error: 'A password must not be your e-mail address.' }
  return { value: read.data }
}

type Shown = {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly notice?: Html | false
  readonly currentError?: string
  readonly newError?: string
}

const roleWords = { owner: 'owner', operator: 'operator', viewer: 'viewer' } as const

function show(signedIn: SignedIn, shown: Shown): Response {
  const { status = 200, headers = {}, notice, currentError, newError } = shown
  const { email, name, memberships, csrf } = signedIn
  const accounts = memberships.map(
    ({ accountName, role }) =>
      html`<tr>
        <td>${accountName}</td>
        <td>${roleWords[role]}</td>
      </tr>`,
  )
  const body = html` ${notice}
    <p>Signed in as <strong>${name ?? email}</strong>${name !== null && html` (${email})`}.</p>
    <h2>Your accounts</h2>
    ${
      memberships.length === 0
        ? html`<p>You belong to no account.</p>`
        : html`<table>
            <thead>
              <tr>
                <th scope="col">Account</th>
                <th scope="col">Role</th>
              </tr>
            </thead>
            <tbody>
              ${accounts}
            </tbody>
          </table>`
    }
    <p><a href="/grants">Applications that may act for you</a></p>
    <h2>Change the password</h2>
    ${formOf({ action: '/account/password', csrf, fields: passwordFields(email, currentError, newError) })}
    <h2>Leave</h2>
    ${formOf({ action: '/sign-out', csrf, fields: html`<button type="submit" class="quiet">Sign out</button>` })}`
  return renderPage({ title: 'Your account', body, status, headers })
}

/** The hidden address tells a password store whose password it is. */
const passwordFields = (email: string, currentError: string | undefined, newError: string | undefined): Html =>
  html` <input type="email" name="email" value="${email}" autocomplete="username" hidden />
    ${fieldOf({ name: 'current', label: 'Password of now', type: 'password', autocomplete: 'current-password', error: currentError })}
    ${fieldOf({ name: 'new', label: 'New password', type: 'password', autocomplete: 'new-password', hint: passwordHint, error: newError })}
    <div class="actions"><button type="submit">Change the password</button></div>`

export const passwordHint = '10 to 256 characters. A few words in a row are good.'
