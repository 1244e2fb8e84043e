/**
 * Owns the human step where a client can take it: its user is sent to the approval page, and nothing is placed before they approved there. The address of the
 * page is nobody's secret: who opens it signs in. MCP 2026-07-28, "Elicitation" and "Multi Round-Trip Requests".
 */
import { inputRequired, inputResponse, type Result } from '@modelcontextprotocol/server'
import type { Clock } from '../../model/clock.ts'
import type { ConfirmationHolder } from '../../model/outbound-calls.ts'
import { Problem } from '../../model/problem.ts'
import { decideConfirmation, findByConfirmationToken, isOpen, type Confirmation } from '../../store/confirmations.ts'
import { openedOrNull, secretPlace, type SecretBox } from '../../store/secret-box.ts'
import type { Sql } from '../../store/sql.ts'
import type { ToolContext } from '../tools/tool.ts'
import { showsPages } from '../client-abilities.ts'

export const approvalsPath = '/approvals/'

export type ApprovalDeps = { readonly sql: Sql; readonly clock: Clock; readonly box: SecretBox }
type Asking = { readonly holder: ConfirmationHolder; readonly token: string; readonly context: ToolContext }

/** What to answer for now. */
type Question = { readonly instead: Result }

/** Under which the client answers. */
const asked = 'approval'
/** Ms that a client which came back waits for its user in one request, and how often it is looked. */
const patience = 8_000
const lookEvery = 500

/**
 * What to answer for now; null when there is nothing to wait for: the user approved, the client has no pages, or the token is none that could be used, which
 * whoever uses it is told. Throws Problem CONFLICT when the user would not open the page.
 */
export async function askApproval(deps: ApprovalDeps, asking: Asking): Promise<Question | null> {
  const { holder, token, context } = asking
  const { sql, clock } = deps
  if (!showsPages(context.protocol)) return null
  const find = async (): Promise<Confirmation | null> => {
    const found = await findByConfirmationToken(sql, holder, token)
    return found && found.state === 'pending' && isOpen(found, clock.now()) ? found : null
  }
  const pending = await find()
  if (!pending) return null
  switch (answerOf(deps, pending, asking)) {
    case 'decline':
      await decideConfirmation(sql, { ...holder, id: pending.id }, 'denied', clock.now())
      return null
    case 'cancel':
      throw new Problem('CONFLICT', 'The user has neither approved nor denied it yet.')
    case 'accept':
      await waitUntil(clock, context.signal, async () => (await find()) === null)
      return (await find()) === null ? null : questionOf(deps, pending, asking)
    case null:
      return questionOf(deps, pending, asking)
  }
}

type Answer = 'accept' | 'decline' | 'cancel'

/** Null: nobody was asked yet. What the client brings back of ours is not believed unless we made it, for this confirmation and this client. */
function answerOf({ box }: ApprovalDeps, { id }: Confirmation, { holder, context }: Asking): Answer | null {
  const state = context.protocol.requestState()
  if (state === undefined) return null
  if (typeof state !== 'string' || openedOrNull(box, state, placeOf(holder)) !== id)
    throw new Problem(
      'VALIDATION_FAILED',
      'The request state is none that this client was given for this confirmation.',
      [{ path: 'requestState', message: 'must be as it was given' }],
    )
  const answer = inputResponse(context.protocol.inputResponses, asked)
  return answer.kind === 'elicit' ? answer.action : null
}

const placeOf = ({ accountId, userId, clientId }: ConfirmationHolder): string =>
  secretPlace('mcp.request_state', accountId, userId, clientId)

function questionOf({ box }: ApprovalDeps, { id, callCount }: Confirmation, { holder, context }: Asking): Question {
  const what = callCount === 1 ? 'a telephone call' : `${callCount} telephone calls`
  const question = inputRequired.elicitUrl({
    message: `Approve ${what} on the page of this service. You sign in there and see what will happen.`,
    url: `${context.publicUrl}${approvalsPath}${id}`,
  })
  return {
    instead: inputRequired({
      inputRequests: { [asked]: question },
      requestState: box.seal(id, placeOf(holder)),
    }),
  }
}

async function waitUntil(clock: Clock, signal: AbortSignal, isSo: () => Promise<boolean>): Promise<void> {
  const until = clock.now() + patience
  while (!signal.aborted && clock.now() < until && !(await isSo())) {
    await new Promise<void>((resolve) => void clock.after(lookEvery, resolve))
  }
}
