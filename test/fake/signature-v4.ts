/**
 * Owns a second opinion on Signature Version 4 (AWS General Reference, "Signature Version 4 signing process", S3 as its service): recomputed from the
 * request as it came, with nothing of the library that signed it.
 */
import { createHash, createHmac } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

export type SignedRequest = {
  readonly method: string
  /** Path and query as they were sent. */
  readonly target: string
  readonly headers: IncomingHttpHeaders
}

export type Credentials = {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly region: string
}

const sha256 = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()

/** RFC 3986 §2.3: everything but unreserved characters. */
const encoded = (text: string): string =>
  [...Buffer.from(text)]
    .map((byte) =>
      /[A-Za-z0-9._~-]/.test(String.fromCharCode(byte))
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .join('')

function canonicalTarget(target: string): string {
  const [path = '', query = ''] = target.split('?', 2)
  const parts = path.split('/').map((part) => encoded(decodeURIComponent(part)))
  const pairs =
    query === ''
      ? []
      : query.split('&').map((pair) => pair.split('=', 2).map((text) => encoded(decodeURIComponent(text))))
  return `${parts.join('/')}\n${pairs
    .map(([name, value = '']) => `${name}=${value}`)
    .toSorted()
    .join('&')}`
}

/** Null: the signature is right, and covers what it must. */
export function flawOfSignature(request: SignedRequest, credentials: Credentials, now: number): string | null {
  const { method, target, headers } = request
  const form =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([\w-]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/
  const [, id, day = '', region = '', names = '', signature] = form.exec(headers.authorization ?? '') ?? []
  if (signature === undefined) return 'no Authorization of Signature Version 4'
  if (id !== credentials.accessKeyId || region !== credentials.region) return 'another key, or another region'
  const signedNames = names.split(';')
  if (names !== signedNames.toSorted().join(';')) return 'signed headers are not sorted'
  const must = ['host', ...Object.keys(headers).filter((name) => name.startsWith('x-amz-'))]
  const unsigned = must.filter((name) => !signedNames.includes(name))
  if (unsigned.length > 0) return `not signed: ${unsigned.join(', ')}`
  const at = String(headers['x-amz-date'])
  const time = Date.parse(at.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  if (!at.startsWith(day) || !(Math.abs(now - time) < 15 * 60_000)) return 'the time of the request is not now'
  const lines = signedNames.map((name) => `${name}:${String(headers[name]).trim().replace(/ +/g, ' ')}\n`)
  const canonical = [
    method,
    canonicalTarget(target),
    lines.join(''),
    names,
    String(headers['x-amz-content-sha256']),
  ].join('\n')
  const scope = `${day}/${region}/s3/aws4_request`
  const toSign = ['AWS4-HMAC-SHA256', at, scope, sha256(canonical)].join('\n')
  const key = hmac(hmac(hmac(hmac(`AWS4${credentials.secretAccessKey}`, day), region), 's3'), 'aws4_request')
  return hmac(key, toSign).toString('hex') === signature ? null : 'the signature is another one'
}

/** Null: the body is the one that was signed, and the one that its other headers tell of. */
export function flawOfBody(headers: IncomingHttpHeaders, body: Uint8Array): string | null {
  const told = String(headers['x-amz-content-sha256'])
  if (told !== 'UNSIGNED-PAYLOAD' && told !== sha256(body)) return 'XAmzContentSHA256Mismatch'
  const md5 = headers['content-md5']
  return md5 !== undefined && md5 !== createHash('md5').update(body).digest('base64') ? 'BadDigest' : null
}
