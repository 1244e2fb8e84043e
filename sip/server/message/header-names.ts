/**
 * Owns the names of header fields: one spelling for each, whatever stood in the message. RFC 3261 §7.3.1, §7.3.3, §20. Those that somebody made
 * for themselves (X-…) keep theirs: some of who reads them compares to the letter.
 */

/** Compact forms of RFC 3261 §7.3.3 and of the extensions that have one (RFC 3515, 3841, 3892, 4028, 4474, 6665). */
const compactForms: Readonly<Record<string, string>> = {
  a: 'Accept-Contact',
  b: 'Referred-By',
  c: 'Content-Type',
  d: 'Request-Disposition',
  e: 'Content-Encoding',
  f: 'From',
  i: 'Call-ID',
  j: 'Reject-Contact',
  k: 'Supported',
  l: 'Content-Length',
  m: 'Contact',
  n: 'Identity-Info',
  o: 'Event',
  r: 'Refer-To',
  s: 'Subject',
  t: 'To',
  u: 'Allow-Events',
  v: 'Via',
  x: 'Session-Expires',
  y: 'Identity',
}

/** Those that nearly every message has, and those that are not simply capital letters at the beginning of each word. */
const knownNames = new Map(
  (
    'Accept Allow Allow-Events Authorization Call-ID Contact Content-Disposition Content-ID Content-Length Content-Type CSeq Date Event ' +
    'Expires From Max-Forwards MIME-Version Min-SE P-Asserted-Identity Privacy RAck Reason Record-Route Require Route RSeq Server ' +
    'Session-Expires SIP-ETag SIP-If-Match Supported To User-Agent User-to-User Via WWW-Authenticate'
  )
    .split(' ')
    .map((name) => [name.toLowerCase(), name]),
)

/** `call-id`, `i` and `CALL-ID` are all `Call-ID`. */
export function headerNameOf(written: string): string {
  const lower = written.toLowerCase()
  const known = lower.length === 1 ? compactForms[lower] : knownNames.get(lower)
  if (known === undefined && lower.startsWith('x-')) return written
  return known ?? lower.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase())
}
