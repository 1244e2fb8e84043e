/** Owns an authorization server for tests, real but for the world outside: its pages, endpoints and people on a real database. */
import { createHash, randomBytes } from 'node:crypto'
import { createSecretKey } from 'node:crypto'
import { createOauth, type OauthDeps } from '../../mcp/oauth/oauth.ts'
import type { FetchDocument } from '../../model/fetch-document.ts'
import { errorBodyOf, Problem } from '../../model/problem.ts'
import type { Fetch } from '../../model/listener.ts'
import { createSecretBox } from '../../store/secret-box.ts'
import type { TestDatabase } from './database.ts'
import { createBrowser, hiddenOf, openPeopleOn } from './people.ts'

export const redirectUri = 'https://client.example/back'
export const appKey = createSecretKey(Buffer.alloc(32, 7))

type Options = {
  readonly publicUrl?: string | null
  readonly fetchDocument?: FetchDocument
}

const noDocument: FetchDocument = async () => ({ kind: 'failed', details: 'nothing is fetched here' })

export async function openOauthOn(database: TestDatabase, options: Options = {}) {
  const { publicUrl = null, fetchDocument = noDocument } = options
  const people = await openPeopleOn(database, { publicUrl })
  const audit = {
    note: async (entry: (typeof people.audited)[number]) => void people.audited.push(entry),
    noteSoon: (entry: (typeof people.audited)[number]) => void people.audited.push(entry),
  }
  const deps: OauthDeps = {
    sql: database.sql,
    box: createSecretBox(appKey),
    now: people.clock.now,
    log: people.log,
    publicUrl,
    fetchDocument,
    audit,
    findSignedIn: people.people.findSignedIn,
    checkCsrf: people.people.checkCsrf,
  }
  /** Another process of the same service. */
  const open = (over: Partial<OauthDeps> = {}) => {
    const oauth = createOauth({ ...deps, ...over })
    const fetch: Fetch = (request, info) => {
      const { pathname } = new URL(request.url)
      const isAt = (path: string) => (path.endsWith('/*') ? pathname.startsWith(path.slice(0, -1)) : pathname === path)
      const page = oauth.pages.find(({ path }) => isAt(path))
      return page ? page.fetch(request, info).catch(problemOf) : people.fetch(request, info)
    }
    return { ...oauth, fetch }
  }
  const oauth = open()
  return { ...people, ...oauth, open, deps, peopleFetch: people.fetch }
}

/** As the rim of the service has it. */
function problemOf(error: unknown): Response {
  if (!(error instanceof Problem)) throw error
  return Response.json(errorBodyOf(error, 'request'), { status: error.status })
}

export const createVerifier = (): string => randomBytes(32).toString('base64url')
export const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')

type Json = Record<string, unknown>
type Answered = { readonly status: number; readonly headers: Headers; readonly json: Json }

/** What a client program does, by plain fetch. */
export function createClient(ask: (request: Request) => Promise<Response>, origin: string) {
  const send = async (path: string, init: RequestInit = {}): Promise<Answered> => {
    const response = await ask(new Request(new URL(path, origin), { redirect: 'manual', ...init }))
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      json: text.startsWith('{') ? (JSON.parse(text) as Json) : { text },
    }
  }
  const post = (path: string, fields: Readonly<Record<string, string>>) =>
    send(path, { method: 'POST', body: new URLSearchParams(fields) })
  const register = async (metadata: Json = {}) => {
    const body = JSON.stringify({ client_name: 'Test client', redirect_uris: [redirectUri], ...metadata })
    return send('/oauth/register', { method: 'POST', body, headers: { 'content-type': 'application/json' } })
  }
  const registered = async (metadata: Json = {}) => String((await register(metadata)).json['client_id'])
  const authorizeUrl = (clientId: string, verifier: string, over: Readonly<Record<string, string | null>> = {}) => {
    const given = {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope: 'account_admin',
      state: 'state-1',
      code_challenge: challengeOf(verifier),
      code_challenge_method: 'S256',
      resource: `${origin}/mcp`,
      ...over,
    }
    const pairs = Object.entries(given).filter((pair): pair is [string, string] => pair[1] !== null)
    return `/oauth/authorize?${new URLSearchParams(pairs).toString()}`
  }
  const exchange = (clientId: string, code: string, verifier: string, over: Readonly<Record<string, string>> = {}) =>
    post('/oauth/token', {
      grant_type: 'authorization_code',
      client_id: clientId,
      code,
      code_verifier: verifier,
      redirect_uri: redirectUri,
      resource: `${origin}/mcp`,
      ...over,
    })
  const refresh = (clientId: string, token: unknown, over: Readonly<Record<string, string>> = {}) =>
    post('/oauth/token', { grant_type: 'refresh_token', client_id: clientId, refresh_token: String(token), ...over })
  return { send, post, register, registered, authorizeUrl, exchange, refresh }
}

type Browser = ReturnType<typeof createBrowser>

/** To the page where a person decides, signing in on the way. */
export async function goToConsent(browser: Browser, url: string, email = 'ada@example.com') {
  const begun = await browser.get(url)
  const path = pathOf(begun.location)
  const page = await browser.get(path)
  if (page.status !== 303) return { path, page }
  await browser.signIn(email, undefined, path)
  return { path, page: await browser.get(path) }
}

export const pathOf = (location: string | null): string => {
  const url = new URL(location ?? '', 'http://nowhere.invalid')
  return url.pathname + url.search
}

/** Decides, and goes on to where the client waits. The first target of the page, and all of its scopes, unless others are given. */
export async function decide(
  browser: Browser,
  { path, page }: { readonly path: string; readonly page: { readonly text: string } },
  given: Readonly<Record<string, string>> & { readonly decision?: 'approve' | 'deny' } = {},
) {
  const { scopes, ...fields } = given
  const boxes =
    scopes?.split(' ') ?? [...page.text.matchAll(/name="scope" value="(\w+)"/g)].map(([, scope]) => scope ?? '')
  const target = /<option value="([^"]*)"/.exec(page.text)?.[1] ?? ''
  const form = new URLSearchParams({ target, ...hiddenOf(page.text, path), decision: 'approve', ...fields })
  for (const box of boxes) form.append('scope', box)
  const decided = await browser.post(path, form.toString())
  if (decided.status !== 303) return { decided, back: null }
  const resumed = await browser.get(pathOf(decided.location))
  return { decided, back: new URL(resumed.location ?? '', 'http://nowhere.invalid') }
}

export { createBrowser }

let people = 0

/**
 * Everything at hand, without a listener: one person who owns one account, her browser and her client program, beside those of the stages before:
 * emptying the database takes longer than most tests.
 */
export async function stageOf(oauthOf: ReturnType<typeof openOauthOn>, over: Partial<OauthDeps> = {}) {
  const opened = await oauthOf
  const oauth = { ...opened, ...opened.open(over) }
  people += 1
  const email = `ada-${people}@example.com`
  const accountId = await oauth.account(`acme-${people}`)
  const userId = await oauth.user(email, [[accountId, 'owner']])
  const askOf =
    (fetch: Fetch, remoteAddress = '192.0.2.7') =>
    (request: Request): Promise<Response> =>
      fetch(request, { remoteAddress })
  const client = createClient(askOf(oauth.fetch), oauth.origin)
  const newBrowser = () => createBrowser(askOf(oauth.fetch), oauth.origin)
  const browser = newBrowser()
  const clientId = await client.registered()
  const toConsent = (her: Browser, url: string) => goToConsent(her, url, email)
  /** Up to a code. */
  const codeOf = async (
    over: Readonly<Record<string, string | null>> = {},
    choice: Parameters<typeof decide>[2] = {},
  ) => {
    const verifier = createVerifier()
    const { back } = await decide(
      browser,
      await toConsent(browser, client.authorizeUrl(clientId, verifier, over)),
      choice,
    )
    return { code: back?.searchParams.get('code') ?? '', verifier, back }
  }
  const tokensOf = async (
    over: Readonly<Record<string, string | null>> = {},
    choice: Parameters<typeof decide>[2] = {},
  ) => {
    const { code, verifier } = await codeOf(over, choice)
    const { json } = await client.exchange(clientId, code, verifier)
    return { access: String(json['access_token']), refresh: String(json['refresh_token']), json }
  }
  return {
    ...oauth,
    accountId,
    userId,
    email,
    client,
    clientId,
    newBrowser,
    askOf,
    toConsent,
    codeOf,
    tokensOf,
    browser,
  }
}
