/** Owns the page where a person sees which clients they have allowed what, and takes it back. docs/contract/mcp.md "Approval". */
import type { Audit } from '../../model/audit.ts'
import type { Fetch } from '../../model/listener.ts'
import { toIso } from '../../model/clock.ts'
import type { FindSignedIn, SignedIn } from '../../model/user.ts'
import { listGrants, removeGrantOf, type GrantFacts } from '../../store/oauth-grants.ts'
import type { Sql } from '../../store/sql.ts'
import { createPageFetch } from '../people/answer-page.ts'
import type { CheckCsrf } from '../people/form-guard.ts'
import { html, type Html } from '../people/html.ts'
import { readPageForm } from '../people/page-form.ts'
import { formOf, noticeOf, renderPage, seeOther } from '../people/page.ts'
import { signInUrl } from '../people/return-to.ts'
import { scopeWords } from './scopes.ts'

export const grantsPath = '/grants'

type Deps = {
  readonly sql: Sql
  readonly now: () => number
  readonly audit: Audit
  readonly findSignedIn: FindSignedIn
  readonly checkCsrf: CheckCsrf
}

export function createGrantsPage({ sql, now, audit, findSignedIn, checkCsrf }: Deps): Fetch {
  return createPageFetch({
    async GET(request) {
      const signedIn = await findSignedIn(request)
      if (!signedIn) return seeOther(signInUrl(grantsPath))
      const isDone = new URL(request.url).searchParams.has('revoked')
      return show(signedIn, await listGrants(sql, signedIn.userId, now()), isDone)
    },
    async POST(request) {
      const signedIn = await findSignedIn(request)
      if (!signedIn) return seeOther(signInUrl(grantsPath))
      const form = await readPageForm(request)
      checkCsrf(request, form, signedIn)
      const removed = await removeGrantOf(sql, signedIn.userId, form.one('grant') ?? '')
      if (removed)
        await audit.note({
          accountId: removed.accountId,
          actor: { kind: 'user', userId: signedIn.userId },
          action: 'oauth.revoke',
          arguments: { clientId: removed.clientId },
          result: 'success',
        })
      return seeOther(`${grantsPath}?revoked`)
    },
  })
}

function show(signedIn: SignedIn, grants: readonly GrantFacts[], isDone: boolean): Response {
  const body = html`${isDone && noticeOf('success', 'The access is taken back, and what it was used by has stopped working.')}
    <p>These applications may act for you here. Each can be stopped at once.</p>
    ${grants.length === 0 ? html`<p>There is none.</p>` : grants.map((grant) => grantOf(grant, signedIn.csrf))}
    <p><a href="/account">Your account</a></p>`
  return renderPage({ title: 'Applications', body })
}

const dayOf = (ms: number): string => toIso(ms).slice(0, 10)

const grantOf = (grant: GrantFacts, csrf: string): Html => {
  const { id, clientName, redirectHost, accountName, workerName, scopes, createdAt, usedAt } = grant
  return html`<section>
    <h2>${clientName}</h2>
    <p>${scopes.map((scope) => scopeWords[scope].title).join(', ')}</p>
    <p class="hint">
      For ${accountName}${workerName !== null && html`, worker ${workerName}`}. Answers went to ${redirectHost}. Allowed
      on ${dayOf(createdAt)}, ${usedAt === null ? 'not used yet' : html`last used on ${dayOf(usedAt)}`}.
    </p>
    ${formOf({
      action: grantsPath,
      csrf,
      fields: html`<input type="hidden" name="grant" value="${id}" />
        <button type="submit" class="bad">Stop ${clientName}</button>`,
    })}
  </section>`
}
