/** Owns the pages of people put together, and what other pages ask of them: who is signed in, and whether a form is theirs. */
import type { PageSessions } from '../../model/user.ts'
import type { Fetch } from '../../model/listener.ts'
import type { Beside } from '../../net/http/beside.ts'
import { createAccountPage, createPasswordPage } from './account-page.ts'
import { createFormGuard, type CheckCsrf } from './form-guard.ts'
import { createInvitationPage, invitationsPath } from './invitation-page.ts'
import { createPasswordCheck } from './password-check.ts'
import type { PeopleDeps } from './people-parts.ts'
import { createSessions } from './sessions.ts'
import { createSignInLinkPage, signInLinksPath } from './sign-in-link-page.ts'
import { createSignInPage, createSignOutPage } from './sign-in-page.ts'

export type People = PageSessions & {
  readonly checkCsrf: CheckCsrf
  readonly pages: readonly (Beside & { readonly fetch: Fetch })[]
}

/** Of a process that leaves the pages to others. */
export function createPageSessions(deps: Pick<PeopleDeps, 'sql' | 'clock' | 'publicUrl'>): PageSessions {
  const guard = createFormGuard(deps.publicUrl)
  return { findSignedIn: createSessions({ ...deps, guard }).find, requireOwnOrigin: guard.requireOwnOrigin }
}

export function createPeople(deps: PeopleDeps): People {
  const guard = createFormGuard(deps.publicUrl)
  const sessions = createSessions({ ...deps, guard })
  const parts = { ...deps, guard, sessions, checkPassword: createPasswordCheck(deps) }
  return {
    findSignedIn: sessions.find,
    requireOwnOrigin: guard.requireOwnOrigin,
    checkCsrf: guard.checkCsrf,
    pages: [
      { path: '/sign-in', fetch: createSignInPage(parts) },
      { path: '/sign-out', fetch: createSignOutPage(parts) },
      { path: '/account', fetch: createAccountPage(parts) },
      { path: '/account/password', fetch: createPasswordPage(parts) },
      { path: `${signInLinksPath}*`, fetch: createSignInLinkPage(parts) },
      { path: `${invitationsPath}*`, fetch: createInvitationPage(parts) },
    ],
  }
}
