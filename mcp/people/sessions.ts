/** Owns who is signed in, by the cookie of a request: sessions begin, are found and end here. */
import type { Clock } from '../../model/clock.ts'
import type { FindSignedIn } from '../../model/user.ts'
import { createSession, endSession, findSession, type NewSession } from '../../store/user-sessions.ts'
import type { Sql } from '../../store/sql.ts'
import { readCookie, removeCookie, setCookie } from './cookies.ts'
import { csrfOf, type FormGuard } from './form-guard.ts'

export type Sessions = {
  readonly find: FindSignedIn
  /** A new token at every sign-in; what the browser had is good no more. Null: the password is another one by now. */
  begin(request: Request, user: Pick<NewSession, 'userId' | 'passwordHash'>): Promise<readonly string[] | null>
  /** Cookies, as `begin` gives them. */
  end(request: Request): Promise<readonly string[]>
}

type Deps = { readonly sql: Sql; readonly clock: Pick<Clock, 'now'>; readonly guard: Pick<FormGuard, 'isSecure'> }

export function createSessions({ sql, clock, guard: { isSecure } }: Deps): Sessions {
  const tokenOf = (request: Request): string | null => readCookie(request, 'parley_session', isSecure(request))
  return {
    async find(request) {
      const token = tokenOf(request)
      const user = token === null ? null : await findSession(sql, token, clock.now())
      return user && token !== null ? { ...user, csrf: csrfOf(token) } : null
    },
    async begin(request, user) {
      const token = await createSession(sql, { ...user, former: tokenOf(request), now: clock.now() })
      if (token === null) return null
      const secure = isSecure(request)
      return [setCookie('parley_session', token, secure), removeCookie('parley_form', secure)]
    },
    async end(request) {
      const token = tokenOf(request)
      if (token !== null) await endSession(sql, token)
      return [removeCookie('parley_session', isSecure(request))]
    },
  }
}
