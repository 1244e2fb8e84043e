/** Owns what the audit log is told of people on the pages: in each of their accounts, so that its owners see it. */
import type { Audit } from '../../model/audit.ts'
import type { UserId } from '../../model/ids.ts'
import type { Membership } from '../../model/user.ts'

export type UserAction = 'user.sign_in' | 'user.sign_out' | 'user.change_password' | 'user.accept_invitation'

type Noted = { readonly userId: UserId; readonly memberships: readonly Pick<Membership, 'accountId'>[] }

const entriesOf = (action: UserAction, { userId, memberships }: Noted) => {
  const accounts = memberships.length > 0 ? memberships.map(({ accountId }) => accountId) : [null]
  return accounts.map((accountId) => ({ accountId, actor: { kind: 'user', userId }, action, arguments: {} }) as const)
}

export async function noteUser(audit: Audit, action: UserAction, user: Noted): Promise<void> {
  await Promise.all(entriesOf(action, user).map((entry) => audit.note({ ...entry, result: 'success' })))
}

/** Nobody waits for it: who guesses must not learn by the time that there is such a user. */
export function noteRefusal(audit: Audit, action: UserAction, user: Noted): void {
  for (const entry of entriesOf(action, user)) audit.noteSoon({ ...entry, result: 'error', errorCode: 'UNAUTHORIZED' })
}
