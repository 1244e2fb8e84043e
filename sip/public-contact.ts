/**
 * Owns our Contact where a peer is to know us by a name: Microsoft Teams and others look the name of our certificate up there. RFC 3261
 * §8.1.1.8. Without a name the server writes its own address.
 */
import { readSipUri } from './server/message/uri.ts'

/** `udp`, `tcp` or `tls`, as a URI asks for it. */
export const protocolOf = (uri: string): string => readSipUri(uri)?.params.get('transport')?.toLowerCase() ?? 'udp'

/** `listening`: `tls/203.0.113.7:5061` and so on. A protocol that is not listened on has the port that the name's records say. */
export function publicContact(name: string, listening: readonly string[], protocol: string, user = ''): string {
  const own = listening.find((place) => place.startsWith(`${protocol}/`))
  const port = own === undefined ? '' : (/:\d+$/.exec(own)?.[0] ?? '')
  const transport = protocol === 'udp' ? '' : `;transport=${protocol}`
  return `<sip:${user}${name}${port}${transport}>`
}

export type NamedOptions = { headers: Record<string, string>; publicName?: string; proxy?: string }

/** A Contact that says `user@localhost`, as that of REGISTER, keeps its user. */
export function withPublicContact<Options extends NamedOptions>(
  options: Options,
  listening: readonly string[],
  protocol: string,
): Options {
  const { publicName } = options
  const named = { ...options }
  delete named.publicName
  const { Contact: given } = options.headers
  const user = /^<sip:([^@>]*@)localhost>$/.exec(given ?? '')?.[1]
  if (publicName === undefined || (given !== undefined && user === undefined)) return named
  named.headers = { ...options.headers, Contact: publicContact(publicName, listening, protocol, user) }
  return named
}
