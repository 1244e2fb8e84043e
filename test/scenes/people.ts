/** Owns the pages of people for tests: the real ones on a real database, and browsers as far as forms and cookies go. */
import { createPeople } from '../../mcp/people/people.ts'
import type { AuditEntry } from '../../model/audit.ts'
import type { AccountId, UserId } from '../../model/ids.ts'
import type { Fetch } from '../../model/listener.ts'
import type { Role } from '../../model/user.ts'
import { createAccount } from '../../store/accounts.ts'
import { addMember } from '../../store/memberships.ts'
import { createPasswords } from '../../store/passwords.ts'
import { createUser } from '../../store/users.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import type { TestDatabase } from './database.ts'
import { newId } from './tenant.ts'

/** So little that a test need not wait for it. */
export const cheap = { logN: 4, r: 1, p: 1 } as const
export const password = 'correct horse battery staple'

/** Keeps cookies as a browser does that knows one host. */
export function createBrowser(ask: (request: Request) => Promise<Response>, origin: string) {
  const cookies = new Map<string, string>()
  const send = async (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    if (cookies.size > 0) headers.set('cookie', [...cookies].map(([name, value]) => `${name}=${value}`).join('; '))
    const response = await ask(new Request(new URL(path, origin), { ...init, headers, redirect: 'manual' }))
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (/max-age=0/i.test(cookie)) cookies.delete(name)
      else cookies.set(name, value)
    }
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, location: response.headers.get('location') }
  }
  const get = (path: string) => send(path)
  const post = (
    path: string,
    fields: Readonly<Record<string, string>> | string,
    headers: Record<string, string> = {},
  ) => {
    const body = typeof fields === 'string' ? fields : new URLSearchParams(fields).toString()
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    return send(path, {
      method: 'POST',
      body,
      headers: { ...type, origin, 'sec-fetch-site': 'same-origin', ...headers },
    })
  }
  /** Fills in what the form of the page has hidden, and sends it. */
  const submit = async (
    path: string,
    fields: Readonly<Record<string, string>>,
    action = path.split('?')[0] ?? path,
  ) => {
    const page = await get(path)
    return post(action, { ...hiddenOf(page.text, action), ...fields })
  }
  const signIn = (email: string, given = password, returnTo?: string) =>
    submit(`/sign-in${returnTo === undefined ? '' : `?returnTo=${encodeURIComponent(returnTo)}`}`, {
      email,
      password: given,
    })
  return { cookies, get, post, send, submit, signIn }
}

/** Of the form with that action. */
export function hiddenOf(page: string, action: string): Record<string, string> {
  const form = page.split('<form ').find((part) => part.includes(`action="${action}"`)) ?? ''
  const inputs = form.split('</form>')[0]?.matchAll(/<input\s+type="hidden"\s+name="(\w+)"\s+value="([^"]*)"/g) ?? []
  return Object.fromEntries([...inputs].map(([, name = '', value = '']) => [name, value.replaceAll('&amp;', '&')]))
}

/** What was there of accounts and people is gone. */
export async function openPeopleOn({ sql }: TestDatabase, { publicUrl = null }: { publicUrl?: string | null } = {}) {
  await sql`truncate accounts, users cascade`
  const [clock, log] = [createHandClock(), createQuietLog()]
  const audited: AuditEntry[] = []
  const audit = {
    note: async (entry: AuditEntry) => void audited.push(entry),
    noteSoon: (entry: AuditEntry) => void audited.push(entry),
  }
  const passwords = createPasswords(cheap)
  const people = createPeople({ sql, clock, newId, log, audit, passwords, publicUrl })
  const fetch: Fetch = async (request, info) => {
    const { pathname } = new URL(request.url)
    const isAt = (path: string): boolean =>
      path.endsWith('/*') ? pathname.startsWith(path.slice(0, -1)) : pathname === path
    const page = people.pages.find(({ path }) => isAt(path))
    return page ? page.fetch(request, info) : new Response('nothing', { status: 404 })
  }
  const account = async (slug: string): Promise<AccountId> => {
    const { id } = await createAccount(sql, { name: `${slug} <account>`, slug, newId, now: clock.now() })
    return id
  }
  const user = async (email: string, roles: readonly (readonly [AccountId, Role])[] = []): Promise<UserId> => {
    const passwordHash = await passwords.hash(password)
    const userId = await createUser(sql, { email, name: null, passwordHash, newId, now: clock.now() })
    for (const [accountId, role] of roles) await addMember(sql, { accountId, userId, role, now: clock.now() })
    return userId
  }
  const origin = publicUrl ?? 'http://127.0.0.1:8080'
  const browser = (remoteAddress = '192.0.2.7') => createBrowser((request) => fetch(request, { remoteAddress }), origin)
  return { sql, clock, log, audited, passwords, people, fetch, account, user, browser, origin }
}
