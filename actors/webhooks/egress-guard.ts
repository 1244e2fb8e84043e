/**
 * Owns the decision where webhooks may go: the URL's scheme, and every address at the moment of dialling. A name is resolved
 * here, all of its addresses are judged, and the socket connects to one of the judged ones, so that a second resolution
 * (DNS rebinding) never happens. docs/contract/webhooks.md "Targets".
 */
import { lookup as systemLookup, Resolver } from 'node:dns/promises'
import { isIP, Socket, type LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { withoutBrackets } from '../../net/addresses.ts'
import { createAllowList } from '../../net/allow-list.ts'
import { isPublic } from '../../net/special-networks.ts'

/** All addresses of a name; throws when there are none. */
export type Resolve = (hostname: string) => Promise<readonly string[]>

export type EgressGuard = {
  /** Why this URL is refused before any resolution; null when the addresses decide. */
  refusalOf(url: URL): string | null
  /** The `connect` of an undici dispatcher. Its error is an EgressRefused when the guard said no. */
  readonly connect: buildConnector.connector
  close(): void
}

export class EgressRefused extends Error {
  override readonly name = 'EgressRefused'
}

const connectTimeout = 10_000
const dnsTimeout = 2_000

/**
 * `allowHosts` holds host names, addresses and CIDR networks; what it names may be private and may be plain http. Throws for
 * an entry that is none of these. A name in the list is resolved as the host does (hosts file included), all others by DNS.
 */
export function createEgressGuard(deps: { allowHosts: readonly string[]; resolve?: Resolve }): EgressGuard {
  const allowed = createAllowList(deps.allowHosts)
  const dns = createResolver()
  const resolve = deps.resolve ?? dns.resolve
  const dialling = new Set<Socket>()

  function judge(address: string, secure: boolean): string | null {
    if (allowed.address(address)) return null
    if (!isPublic(address)) return 'the target is not a public address'
    return secure ? null : 'the target must be https'
  }
  async function vet(hostname: string, secure: boolean): Promise<readonly string[]> {
    if (allowed.name(hostname)) return (await systemLookup(hostname, { all: true })).map(({ address }) => address)
    const addresses = await resolve(hostname)
    const refusal = addresses.map((address) => judge(address, secure)).find((reason) => reason !== null)
    if (refusal) throw new EgressRefused(refusal)
    return addresses
  }
  const connectors = {
    'https:': connectorOf((hostname) => vet(hostname, true)),
    'http:': connectorOf((hostname) => vet(hostname, false)),
  }

  const connect: buildConnector.connector = (options, callback) => {
    const hostname = withoutBrackets(options.hostname)
    const secure = options.protocol === 'https:'
    // A literal never reaches a lookup.
    const refusal = isIP(hostname) === 0 ? null : judge(hostname, secure)
    if (refusal) return queueMicrotask(() => callback(new EgressRefused(refusal), null))
    const socket: unknown = connectors[secure ? 'https:' : 'http:'](options, (...outcome) => {
      if (socket instanceof Socket) dialling.delete(socket)
      callback(...outcome)
    })
    // Typed as void, but it is the socket: the only hold on it until it is connected.
    if (socket instanceof Socket) dialling.add(socket)
  }

  return {
    connect,
    refusalOf(url) {
      // `URL` has normalised decimal, octal, hexadecimal and full-width hosts to dotted ones by now.
      const hostname = withoutBrackets(url.hostname)
      if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'the target must be https'
      if (url.username !== '' || url.password !== '') return 'the target must not carry credentials'
      if (isIP(hostname) !== 0) return judge(hostname, url.protocol === 'https:')
      if (url.protocol === 'https:' || allowed.name(hostname) || allowed.hasNetworks) return null
      return 'the target must be https'
    },
    close() {
      dns.close()
      for (const socket of dialling) socket.destroy()
      dialling.clear()
    },
  }
}

function connectorOf(vet: Resolve): buildConnector.connector {
  const lookup: LookupFunction = (hostname, options, callback) => {
    const answer = (addresses: readonly string[]) => {
      const [first] = addresses
      if (first === undefined) return callback(new Error(`${hostname} has no address`), '')
      if (!options.all) return callback(null, first, isIP(first))
      callback(
        null,
        addresses.map((address) => ({ address, family: isIP(address) })),
      )
    }
    vet(hostname).then(answer, (error: Error) => callback(error, ''))
  }
  return buildConnector({ lookup, timeout: connectTimeout, allowH2: false })
}

/** Not dns.lookup: that waits in the few threads of libuv, where one dead name server would hold up the names of everybody else. */
function createResolver(): { resolve: Resolve; close(): void } {
  const resolver = new Resolver({ timeout: dnsTimeout, tries: 2 })
  return {
    async resolve(hostname) {
      const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
      const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
      if (addresses.length > 0) return addresses
      throw new Error(`${hostname} does not resolve`, { cause: answers.find(({ status }) => status === 'rejected') })
    },
    close: () => resolver.cancel(),
  }
}
