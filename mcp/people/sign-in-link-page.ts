/** Owns the address that signs a person in once, without a password: whoever runs the service on their own machine gets it when it starts. */
import { listMemberships } from '../../store/memberships.ts'
import { useSignInLink } from '../../store/sign-in-links.ts'
import { createPageFetch } from './answer-page.ts'
import { html } from './html.ts'
import { noteUser } from './note-user.ts'
import { renderPage, seeOther } from './page.ts'
import type { PeopleParts } from './people-parts.ts'

export const signInLinksPath = '/enter/'
const afterwards = '/console'

export function createSignInLinkPage({ sql, clock, guard, sessions, audit }: PeopleParts) {
  return createPageFetch({
    GET: async (request) => {
      // Another page must not sign anybody in as somebody else.
      guard.requireOwnOrigin(request)
      // A program that only looks whether it is there uses nothing up.
      if (request.method === 'HEAD') return seeOther(afterwards)
      const token = new URL(request.url).pathname.slice(signInLinksPath.length)
      const user = await useSignInLink(sql, token, clock.now())
      const cookies = user && (await sessions.begin(request, user))
      if (!user || !cookies) return usedUp()
      await noteUser(audit, 'user.sign_in', { ...user, memberships: await listMemberships(sql, user.userId) })
      return seeOther(afterwards, cookies)
    },
  })
}

const usedUp = (): Response =>
  renderPage({
    title: 'This link is good no more',
    status: 404,
    body: html`<p>It signs in once, and for a quarter of an hour. The next start of the service prints another one.</p>
      <p><a href="/sign-in?returnTo=%2Fconsole">Sign in with a password</a></p>`,
  })
