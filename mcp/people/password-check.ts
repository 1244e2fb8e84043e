/**
 * Owns how a password is tried: a few times from an address and of a user, right or wrong, and then not looked at for a while. Who has proved it
 * from an address before is heard there all the same, and while a user is under attack every other address has one try: a stranger locks nobody
 * out. As long takes an address of which there is no user.
 */
import type { Clock } from '../../model/clock.ts'
import type { Passwords } from '../../store/passwords.ts'
import type { Sql } from '../../store/sql.ts'
import { createGuessLimit } from '../../net/guess-limit.ts'
import { Problem } from '../../model/problem.ts'
import { findUserByEmail, renewHash, type UserRow } from '../../store/users.ts'

/**
 * `user`: whose e-mail address it is, also when the password is wrong. Throws Problem RATE_LIMITED for too many tries, SERVICE_UNAVAILABLE while
 * too many others wait.
 */
export type PasswordCheck = (
  email: string,
  password: string,
  remoteAddress: string,
) => Promise<{ readonly user: UserRow | null; readonly isRight: boolean }>

/** Behind one address there may be an office. */
const perAddress = { capacity: 10, perMs: 1 / 30_000 }

type Deps = { readonly sql: Sql; readonly clock: Pick<Clock, 'now'>; readonly passwords: Passwords }

export function createPasswordCheck({ sql, clock, passwords }: Deps): PasswordCheck {
  const guesses = createGuessLimit({ now: () => clock.now(), isExempt: () => false, perAddress })
  return async (email, password, address) => {
    const look = guesses.look({ target: email, address, port: 0, protocol: 'sign-in', isProven: true })
    if (look.wait > 0) throw tooMany(look.wait)
    const user = await findUserByEmail(sql, email)
    const { matches, isOutdated } = await passwords.verify(password, user?.passwordHash ?? null)
    if (!matches || !user) return { user, isRight: false }
    look.right()
    return { user: isOutdated ? await hashedAnew(user, password) : user, isRight: true }
  }

  async function hashedAnew(user: UserRow, password: string): Promise<UserRow> {
    const { userId, passwordHash: formerHash } = user
    try {
      const passwordHash = await passwords.hash(password)
      const isRenewed = await renewHash(sql, { userId, passwordHash, formerHash })
      return isRenewed ? { ...user, passwordHash } : user
    } catch (error) {
      // Too many others wait: the next sign-in does it.
      if (error instanceof Problem) return user
      throw error
    }
  }
}

function tooMany(wait: number): Problem {
  const seconds = Math.ceil(wait / 1000)
  return new Problem('RATE_LIMITED', `Too many tries. Try again in ${seconds} s.`, null, { retryAfterSeconds: seconds })
}
