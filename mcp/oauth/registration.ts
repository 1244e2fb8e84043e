/** Owns what is asked of a client that registers itself (RFC 7591). Anybody may, so each address may only so often. docs/contract/mcp.md "Clients". */
import type { RequestInfo } from '../../model/listener.ts'
import { addressGroupOf } from '../../net/addresses.ts'
import { createTokenBuckets, msUntil, perMinute, takeToken } from '../../net/token-bucket.ts'
import { metadataOf, WrongMetadata, type Metadata } from './client-metadata.ts'
import { oauthError } from './oauth-request.ts'

const perAddress = perMinute(60)
const maxAddresses = 10_000

/** The body that the library is given, or the answer to one that cannot be taken. */
export type ReadRegistration = (
  request: Request,
  body: Uint8Array<ArrayBuffer>,
  info: RequestInfo,
) => Uint8Array<ArrayBuffer> | Response

export function createReadRegistration({ now }: { readonly now: () => number }): ReadRegistration {
  const addresses = createTokenBuckets(perAddress, maxAddresses)
  return (request, body, info) => {
    const bucket = addresses(addressGroupOf(info.remoteAddress), now())
    if (!takeToken(bucket, now())) {
      const seconds = Math.ceil(msUntil(bucket, now()) / 1000)
      return oauthError('temporarily_unavailable', 'too many registrations from this address', 429, {
        'retry-after': String(seconds),
      })
    }
    if (!/^application\/json\b/i.test(request.headers.get('content-type') ?? ''))
      return oauthError('invalid_client_metadata', 'a registration is a JSON object (application/json)')
    return registrationOf(body)
  }
}

function registrationOf(body: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> | Response {
  const given = objectIn(new TextDecoder().decode(body))
  if (given === null) return oauthError('invalid_client_metadata', 'a registration is a JSON object')
  try {
    const { client_id: _given, client_id_issued_at: _issued, ...metadata } = metadataOf(withoutNulls(given))
    return new TextEncoder().encode(JSON.stringify(metadata))
  } catch (error) {
    if (!(error instanceof WrongMetadata)) throw error
    return oauthError(error.code, error.message)
  }
}

/** Clients that fill in a form of RFC 7591 send what they have not got as null. */
const withoutNulls = (given: Metadata): Metadata =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))

function objectIn(text: string): Metadata | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Metadata) : null
  } catch {
    // Not JSON: the client is told so.
    return null
  }
}
