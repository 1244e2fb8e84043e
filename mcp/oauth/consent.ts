/**
 * Owns the step in which a person decides about a client: who asks is shown, the person signs in, chooses the account, the worker and what of the
 * scopes, and approves or denies. Nobody approves more than they may do themselves. docs/contract/mcp.md "Approval".
 */
import { errors, type Client, type InteractionResults, type Provider } from 'oidc-provider'
import type { Audit } from '../../model/audit.ts'
import { toId, type AccountId, type WorkerId } from '../../model/ids.ts'
import type { Fetch } from '../../model/listener.ts'
import { isForWorker, mcpScopesIn, type McpScope } from '../../model/mcp-access.ts'
import { Problem } from '../../model/problem.ts'
import type { FindSignedIn, SignedIn } from '../../model/user.ts'
import { beginGrant } from '../../store/oauth-grants.ts'
import type { Sql } from '../../store/sql.ts'
import { createToken } from '../../store/token.ts'
import { listWorkers } from '../../store/workers.ts'
import { createPageFetch } from '../people/answer-page.ts'
import type { CheckCsrf } from '../people/form-guard.ts'
import { readPageForm, type PageForm } from '../people/page-form.ts'
import { seeOther } from '../people/page.ts'
import { signInUrl } from '../people/return-to.ts'
import { redirectHostOf } from './client-metadata.ts'
import { renderConsent, type Asked, type Target } from './consent-page.ts'
import type { Exchange } from './node-exchange.ts'
import { consentPath } from './provider.ts'

export type ConsentDeps = {
  readonly sql: Sql
  readonly now: () => number
  readonly audit: Audit
  readonly findSignedIn: FindSignedIn
  readonly checkCsrf: CheckCsrf
  /** The library, and an exchange with it that has the cookies of the request. */
  readonly enter: (request: Request) => Promise<{ readonly provider: Provider; readonly exchange: Exchange }>
}

type Pending = {
  readonly request: Request
  readonly provider: Provider
  readonly exchange: Exchange
  readonly uid: string
  readonly client: Client
  readonly redirectUri: string
  readonly requested: string
  readonly resource: string
}

export function createConsent(deps: ConsentDeps): Fetch {
  const { findSignedIn, checkCsrf } = deps
  return createPageFetch({
    async GET(request) {
      const pending = await pendingOf(deps, request)
      const signedIn = await findSignedIn(request)
      if (!signedIn) return seeOther(signInUrl(`${consentPath}/${pending.uid}`))
      return show(deps, pending, signedIn)
    },
    async POST(request) {
      const pending = await pendingOf(deps, request)
      const signedIn = await findSignedIn(request)
      if (!signedIn) return seeOther(signInUrl(`${consentPath}/${pending.uid}`))
      const form = await readPageForm(request)
      checkCsrf(request, form, signedIn)
      return form.one('decision') === 'approve' ? approve(deps, pending, signedIn, form) : deny(deps, pending, signedIn)
    },
  })
}

/** Throws Problem NOT_FOUND when the browser has no such request under way. */
async function pendingOf({ enter }: ConsentDeps, request: Request): Promise<Pending> {
  const { provider, exchange } = await enter(request)
  const details = await provider.interactionDetails(exchange.req, exchange.res).catch(asOver)
  const { params, uid } = details
  if (new URL(request.url).pathname !== `${consentPath}/${uid}`) throw over()
  const client = await provider.Client.find(textOf(params['client_id'])).catch(asOver)
  if (!client) throw over()
  return {
    request,
    provider,
    exchange,
    uid,
    client,
    redirectUri: textOf(params['redirect_uri']),
    requested: textOf(params['scope']),
    resource: textOf(params['resource']),
  }
}

/** Of several resources all are the same one. */
const textOf = (param: unknown): string => {
  const one: unknown = Array.isArray(param) ? param[0] : param
  return typeof one === 'string' ? one : ''
}

function asOver(error: unknown): never {
  throw error instanceof errors.OIDCProviderError ? over() : error
}

const over = (): Problem =>
  new Problem(
    'NOT_FOUND',
    'This request is over, or was begun in another browser. Begin again in the application that asks.',
  )

async function show(deps: ConsentDeps, pending: Pending, signedIn: SignedIn, wrong?: string): Promise<Response> {
  const asked = askedOf(pending)
  return renderConsent({ asked, signedIn, targets: await targetsOf(deps.sql, asked, signedIn), wrong })
}

const askedOf = ({ uid, client, redirectUri, requested }: Pending): Asked => ({
  action: `${consentPath}/${uid}`,
  clientId: client.clientId,
  clientName: client.clientName ?? client.clientId,
  redirectUri,
  scopes: mcpScopesIn(requested),
})

const mayApprove = ({ memberships }: SignedIn) => memberships.filter(({ role }) => role !== 'viewer')

/** What a grant may be for: an account, or one worker of it. */
async function targetsOf(sql: Sql, { scopes }: Asked, signedIn: SignedIn): Promise<readonly Target[]> {
  const accounts = mayApprove(signedIn)
  const whole = scopes.includes('account_admin')
  if (!scopes.some(isForWorker)) return accounts.map((account) => ({ ...account, worker: null }))
  const lists = accounts.map(async (account): Promise<Target[]> => {
    const workers = await listWorkers(sql, account.accountId)
    const each = workers.map(({ id, name }) => ({ ...account, worker: { id, name } }))
    return whole ? [...each, { ...account, worker: null }] : each
  })
  return (await Promise.all(lists)).flat()
}

async function deny(deps: ConsentDeps, pending: Pending, { userId }: SignedIn): Promise<Response> {
  const { clientId, clientName = null } = pending.client
  await deps.audit.note({
    accountId: null,
    actor: { kind: 'user', userId },
    action: 'oauth.deny',
    arguments: { clientId, clientName, scope: pending.requested },
    result: 'success',
  })
  return finish(pending, { error: 'access_denied', error_description: 'the person has denied it' })
}

async function approve(deps: ConsentDeps, pending: Pending, signedIn: SignedIn, form: PageForm): Promise<Response> {
  const [accountId = '', workerId = ''] = (form.one('target') ?? '').split('/')
  const membership = signedIn.memberships.find((one) => one.accountId === accountId)
  if (membership?.role === 'viewer') throw new Problem('INSUFFICIENT_SCOPE', viewersMayNot)
  if (!membership) return show(deps, pending, signedIn, 'Choose what this is for.')
  const worker = workerId === '' ? null : await workerOf(deps.sql, membership.accountId, workerId)
  const chosen = form.all('scope')
  const scopes = mcpScopesIn(pending.requested).filter(
    (scope) => chosen.includes(scope) && (worker !== null || !isForWorker(scope)),
  )
  if (scopes.length === 0 || (workerId !== '' && worker === null))
    return show(deps, pending, signedIn, 'Choose at least one of what it asks for, and what it is for.')
  const workerOfGrant = scopes.some(isForWorker) ? worker : null
  const grantId = await saveGrant(deps, pending, signedIn, {
    accountId: membership.accountId,
    workerId: workerOfGrant,
    scopes,
  })
  return finish(pending, { login: { accountId: signedIn.userId, remember: false }, consent: { grantId } })
}

const viewersMayNot =
  'You are a viewer of this account. Everything that can be asked for here can change something, and a viewer may not allow that.'

async function workerOf(sql: Sql, accountId: AccountId, given: string): Promise<WorkerId | null> {
  const id = toId<'worker'>(given)
  const workers = id === null ? [] : await listWorkers(sql, accountId)
  return workers.some((worker) => worker.id === id) ? id : null
}

type Choice = {
  readonly accountId: AccountId
  readonly workerId: WorkerId | null
  readonly scopes: readonly McpScope[]
}

async function saveGrant(deps: ConsentDeps, pending: Pending, { userId }: SignedIn, choice: Choice): Promise<string> {
  const { client, provider, requested, resource, redirectUri } = pending
  const { clientId } = client
  const id = createToken()
  const clientName = client.clientName ?? clientId
  const redirectHost = redirectHostOf(redirectUri)
  await beginGrant(deps.sql, { id, userId, ...choice, clientId, clientName, redirectHost, now: deps.now() })
  const grant = new provider.Grant({ accountId: userId, clientId })
  grant.jti = id
  const asked = requested.split(' ').filter((scope) => scope !== '')
  const denied = mcpScopesIn(requested).filter((scope) => !choice.scopes.includes(scope))
  grant.addOIDCScope(asked.filter((scope) => !(denied as readonly string[]).includes(scope)).join(' '))
  grant.addResourceScope(resource, choice.scopes.join(' '))
  if (denied.length > 0) {
    grant.rejectOIDCScope(denied.join(' '))
    grant.rejectResourceScope(resource, denied.join(' '))
  }
  await grant.save()
  await deps.audit.note({
    accountId: choice.accountId,
    actor: { kind: 'user', userId },
    action: 'oauth.approve',
    arguments: { clientId, clientName, redirectHost, scopes: choice.scopes, workerId: choice.workerId },
    result: 'success',
  })
  return id
}

async function finish({ provider, exchange }: Pending, result: InteractionResults): Promise<Response> {
  await provider.interactionFinished(exchange.req, exchange.res, result, { mergeWithLastSubmission: false })
  return exchange.answer()
}
