/** Owns what the pages of people are built from. */
import type { Audit } from '../../model/audit.ts'
import type { Clock } from '../../model/clock.ts'
import type { NewId } from '../../model/ids.ts'
import type { Log } from '../../model/log.ts'
import type { Passwords } from '../../store/passwords.ts'
import type { Sql } from '../../store/sql.ts'
import type { FormGuard } from './form-guard.ts'
import type { PasswordCheck } from './password-check.ts'
import type { Sessions } from './sessions.ts'

export type PeopleDeps = {
  readonly sql: Sql
  readonly clock: Pick<Clock, 'now'>
  readonly newId: NewId
  readonly log: Log
  readonly audit: Audit
  readonly passwords: Passwords
  /** The address people know this service by; null: whatever host a request names. */
  readonly publicUrl: string | null
}

export type PeopleParts = PeopleDeps & {
  readonly guard: FormGuard
  readonly sessions: Sessions
  readonly checkPassword: PasswordCheck
}
