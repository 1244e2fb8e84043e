/**
 * Owns the page where a person approves or denies calls that a client of theirs has prepared: what will happen, in words, and one answer. For anybody else,
 * and once it is over, there is nothing to do here. docs/contract/mcp.md "Approval page".
 */
import type { Audit } from '../../model/audit.ts'
import type { Clock } from '../../model/clock.ts'
import { toId } from '../../model/ids.ts'
import type { Fetch } from '../../model/listener.ts'
import { Problem } from '../../model/problem.ts'
import type { FindSignedIn, SignedIn } from '../../model/user.ts'
import { decideConfirmation, findConfirmationOf, isOpen, type Confirmation } from '../../store/confirmations.ts'
import type { Sql } from '../../store/sql.ts'
import { createPageFetch } from '../people/answer-page.ts'
import type { CheckCsrf } from '../people/form-guard.ts'
import { html, type Html } from '../people/html.ts'
import { readPageForm } from '../people/page-form.ts'
import { formOf, noticeOf, renderPage, seeOther } from '../people/page.ts'
import { signInUrl } from '../people/return-to.ts'
import { approvalsPath } from './ask-approval.ts'
import { timeInWords } from './call-summary.ts'

type Deps = {
  readonly sql: Sql
  readonly clock: Pick<Clock, 'now'>
  readonly audit: Audit
  readonly findSignedIn: FindSignedIn
  readonly checkCsrf: CheckCsrf
}

/** Of the users of an account these may have calls placed. */
const mayPlaceCalls: readonly string[] = ['owner', 'operator']

export function createApprovalPage({ sql, clock, audit, findSignedIn, checkCsrf }: Deps): Fetch {
  const handle =
    (
      answer: (request: Request, signedIn: SignedIn, confirmation: Confirmation) => Promise<Response> | Response,
    ): Fetch =>
    async (request) => {
      const { pathname } = new URL(request.url)
      const signedIn = await findSignedIn(request)
      if (!signedIn) return seeOther(signInUrl(pathname))
      const id = toId<'confirmation'>(pathname.slice(approvalsPath.length))
      const confirmation = id && (await findConfirmationOf(sql, signedIn.userId, id))
      if (!confirmation || !mayDecide(signedIn, confirmation)) throw nothingHere()
      return answer(request, signedIn, confirmation)
    }
  return createPageFetch({
    GET: handle((_, signedIn, confirmation) => show(signedIn, confirmation, clock.now())),
    POST: handle(async (request, signedIn, { id, accountId, userId }) => {
      const form = await readPageForm(request)
      checkCsrf(request, form, signedIn)
      const word = wordIn(form.one('answer'))
      if (await decideConfirmation(sql, { id, accountId, userId }, word, clock.now()))
        await audit.note({
          accountId,
          actor: { kind: 'user', userId: signedIn.userId },
          action: word === 'approved' ? 'confirmation.approve' : 'confirmation.deny',
          arguments: { confirmationId: id },
          result: 'success',
        })
      return seeOther(`${approvalsPath}${id}`)
    }),
  })
}

const mayDecide = ({ memberships }: SignedIn, confirmation: Confirmation): boolean =>
  memberships.some(({ accountId, role }) => accountId === confirmation.accountId && mayPlaceCalls.includes(role))

/** The same for what does not exist, is another's, or is of an account that the person has left. */
const nothingHere = (): Problem => new Problem('NOT_FOUND', 'There is nothing for you to approve here.')

function wordIn(answer: string | null): 'approved' | 'denied' {
  if (answer === 'approve') return 'approved'
  if (answer === 'deny') return 'denied'
  throw new Problem('VALIDATION_FAILED', 'Approve or deny.')
}

function show(signedIn: SignedIn, confirmation: Confirmation, now: number): Response {
  const { state, callCount } = confirmation
  const title = callCount === 1 ? 'Approve a call' : `Approve ${callCount} calls`
  if (isOpen(confirmation, now)) return renderPage({ title, body: openBody(signedIn, confirmation) })
  const told = noticeOf(state === 'consumed' ? 'success' : 'error', endingOf(confirmation))
  return renderPage({
    title,
    body: html`${told}
      <p>There is nothing left to do here.</p>`,
  })
}

function endingOf({ state, callCount }: Confirmation): string {
  switch (state) {
    case 'consumed':
      return callCount === 1 ? 'The call was confirmed and placed.' : 'The calls were confirmed and scheduled.'
    case 'denied':
      return 'You denied it. Nothing is placed.'
    case 'revoked':
      return 'The application has taken it back. Nothing is placed.'
    case 'pending':
    case 'approved':
      return 'It was not confirmed in time. Nothing is placed.'
  }
}

function openBody({ csrf, memberships }: SignedIn, confirmation: Confirmation): Html {
  const { id, accountId, clientName, summary, state, expiresAt } = confirmation
  const account = memberships.find((one) => one.accountId === accountId)?.accountName ?? ''
  const isApproved = state === 'approved'
  return html`${isApproved && noticeOf('success', 'You approved it. Go back to the application, which goes on by itself.')}
    <p><strong>${clientName}</strong> asks to do this for you in the account <strong>${account}</strong>:</p>
    ${summary.split('\n').map((line) => html`<p>${line}</p>`)}
    <p class="hint">This can be confirmed until ${timeInWords(expiresAt, '+00:00')}.</p>
    ${formOf({
      action: `${approvalsPath}${id}`,
      csrf,
      fields: html`<p class="actions">
        ${!isApproved && html`<button type="submit" name="answer" value="approve">Approve</button>`}
        <button type="submit" name="answer" value="deny" class="bad">${isApproved ? 'Deny after all' : 'Deny'}</button>
      </p>`,
    })}`
}
