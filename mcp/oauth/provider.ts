/**
 * Owns what oidc-provider is told to be: an authorization server of OAuth 2.1 for one issuer and its one resource, `/mcp`. Its defaults are those of
 * OpenID Connect and of a first try; everything that we do not offer is off here by name. docs/contract/mcp.md "Authorization".
 */
import {
  errors,
  interactionPolicy,
  Provider,
  type Configuration,
  type JWKS,
  type KoaContextWithOIDC,
} from 'oidc-provider'
import { mcpScopes, mcpScopesIn } from '../../model/mcp-access.ts'
import { Problem } from '../../model/problem.ts'
import { isGrantAlive, type GrantOwner } from '../../store/oauth-grants.ts'
import type { Sql } from '../../store/sql.ts'
import { pageOfProblem } from '../people/answer-page.ts'
import { resourceOf } from '../resource-metadata.ts'
import { createAdapter } from './adapter.ts'
import type { ClientDocuments } from './client-documents.ts'
import { defaultScope, offlineAccess } from './scopes.ts'

export const oauthRoutes = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  jwks: '/oauth/jwks',
  registration: '/oauth/register',
  revocation: '/oauth/revoke',
} as const

export const consentPath = '/oauth/consent'

/** Seconds. */
export const lifetimes = {
  code: 60,
  accessToken: 3600,
  refreshToken: 30 * 24 * 3600,
  /** However often its tokens are refreshed, a person is asked anew after a year. */
  grant: 365 * 24 * 3600,
  /** For signing in, and thinking about it. */
  request: 1800,
}

export type ProviderDeps = {
  readonly sql: Sql
  readonly now: () => number
  readonly documents: ClientDocuments
  readonly ended: (grant: GrantOwner) => Promise<void>
}

export type Keys = { readonly signing: JWKS; readonly cookies: readonly string[] }

export function createProvider(deps: ProviderDeps, origin: string, keys: Keys): Provider {
  const { sql, now, documents } = deps
  const resource = resourceOf(origin)
  const configuration: Configuration = {
    ...ofTheLibrary,
    adapter: createAdapter(deps),
    jwks: keys.signing,
    cookies: cookiesOf(keys),
    features: {
      ...features,
      clientIdMetadataDocument: {
        enabled: true,
        ack: 'draft-02',
        allowFetch: documents.mayFetch,
        allowClient: documents.mayBeClient,
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo(ctx, asked) {
          if (asked !== resource) throw new errors.InvalidTarget(`the only resource is ${resource}`)
          if (ctx.oidc.route === 'authorization') settleScopes(ctx)
          return {
            scope: mcpScopes.join(' '),
            audience: resource,
            accessTokenTTL: lifetimes.accessToken,
            accessTokenFormat: 'opaque',
          }
        },
      },
    },
    fetch: documents.fetch,
    /** At the token endpoint the grant must still be worth something: its user may have left the account. */
    async findAccount(_ctx, sub, token) {
      const { grantId } = (token ?? {}) as { grantId?: string }
      if (grantId !== undefined && !(await isGrantAlive(sql, grantId, sub, now()))) return undefined
      return { accountId: sub, claims: () => ({ sub }) }
    },
    loadExistingGrant: (ctx) => approvedGrantOf(ctx),
    interactions: { policy: consentAlways(), url: (_ctx, { uid }) => `${consentPath}/${uid}` },
    renderError,
  }
  const provider = new Provider(origin, configuration)
  provider.silent = true
  provider.Client.prototype.responseModeAllowed = (mode, type) => mode === 'query' || !asksForCode(type)
  return provider
}

/** Of any other type the mode is not asked: the library would refuse it for that, before it says that there is no such type (RFC 6749 section 4.1.2.1). */
const asksForCode = (type: string | undefined): boolean => new Set(type?.split(' ')).isSubsetOf(new Set(['code']))

/**
 * The library asks about the resource before it looks at the scopes. It knows `openid` whether it is offered or not; identity is nothing that we give
 * to others, so it is left out.
 */
function settleScopes({ oidc: { params } }: KoaContextWithOIDC): void {
  if (!params) return
  const asked = typeof params['scope'] === 'string' ? params['scope'] : defaultScope
  if (mcpScopesIn(asked).length === 0) throw new errors.InvalidScope('no scope of this service was asked for', asked)
  params['scope'] = asked
    .split(' ')
    .filter((scope) => scope !== 'openid')
    .join(' ')
}

const features = {
  devInteractions: { enabled: false },
  dPoP: { enabled: false },
  pushedAuthorizationRequests: { enabled: false },
  rpInitiatedLogout: { enabled: false },
  userinfo: { enabled: false },
  registration: { enabled: true, issueRegistrationAccessToken: false },
  registrationManagement: { enabled: false },
  revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId },
} satisfies Configuration['features']

const ofTheLibrary: Configuration = {
  routes: { ...oauthRoutes },
  scopes: [...mcpScopes, offlineAccess],
  responseTypes: ['code'],
  clientAuthMethods: ['none', 'private_key_jwt'],
  clientDefaults: {
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    response_modes: ['query'],
    token_endpoint_auth_method: 'none',
    id_token_signed_response_alg: 'ES256',
  },
  enabledJWA: {
    clientAuthSigningAlgValues: ['RS256', 'PS256', 'ES256', 'Ed25519', 'EdDSA'],
    idTokenSigningAlgValues: ['ES256'],
  },
  pkce: { required: () => true },
  clientBasedCORS: () => true,
  rotateRefreshToken: true,
  expiresWithSession: () => false,
  issueRefreshToken: (_ctx, client) => client.grantTypeAllowed('refresh_token'),
  // Whichever of its tokens is revoked: the grant is over.
  revokeGrantPolicy: () => true,
  fetchResponseBodyLimits: {
    'client_id metadata document': 5 * 1024,
    jwks_uri: 64 * 1024,
    sector_identifier_uri: 1024,
  },
  ttl: {
    AccessToken: lifetimes.accessToken,
    AuthorizationCode: lifetimes.code,
    Grant: lifetimes.grant,
    IdToken: lifetimes.accessToken,
    Interaction: lifetimes.request,
    RefreshToken: lifetimes.refreshToken,
    Session: lifetimes.request,
  },
}

function cookiesOf({ cookies }: Keys): NonNullable<Configuration['cookies']> {
  const shared = { httpOnly: true, sameSite: 'lax', signed: true } as const
  return {
    names: { session: 'oauth_session', interaction: 'oauth_request', resume: 'oauth_resume' },
    long: { ...shared, path: '/oauth' },
    short: shared,
    keys: [...cookies],
  }
}

/** A person is asked each time: clients that registered themselves prove nothing, and a silent approval would be anybody's. */
function consentAlways() {
  const policy = interactionPolicy.base()
  const consent = policy.get('consent')
  const { Check } = interactionPolicy
  consent?.checks.add(new Check('approval', 'a person must approve', (ctx) => approvedGrantIdOf(ctx) === undefined), 0)
  return policy
}

const approvedGrantIdOf = (ctx: KoaContextWithOIDC): string | undefined => ctx.oidc.result?.consent?.grantId

async function approvedGrantOf(ctx: KoaContextWithOIDC) {
  const grantId = approvedGrantIdOf(ctx)
  return grantId === undefined ? undefined : ctx.oidc.provider.Grant.find(grantId)
}

type Out = { readonly error: string; readonly error_description?: string | undefined }

/** A page for people at the authorization endpoint, JSON for programs everywhere else. */
async function renderError(ctx: KoaContextWithOIDC, out: Out): Promise<void> {
  const { error, error_description: description } = out
  if (!ctx.path.startsWith(oauthRoutes.authorization)) {
    ctx.body = { error, ...(description !== undefined && { error_description: description }) }
    return
  }
  const page = pageOfProblem(
    new Problem('VALIDATION_FAILED', `${wentWrong} (${error}: ${description ?? 'nothing more is known'})`),
  )
  for (const [name, value] of page.headers) ctx.set(name, value)
  ctx.body = await page.text()
}

const wentWrong =
  'The application that sent you here asked for something that cannot be given. Go back to it and begin again; when that does not help, its maker must mend it.'
