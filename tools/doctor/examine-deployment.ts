/** Owns the examination of a service that runs somewhere, by its address: what a browser, a client and a carrier meet on the way to it. */
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import net from 'node:net'
import tls from 'node:tls'
import { WebSocket } from 'ws'
import { reasonOf } from '../../app/told-failure.ts'
import { askBySip } from './ask-by-sip.ts'
import { bad, doubtful, leftOut, well, type Check, type Looked } from './finding.ts'
import { tryMedia } from './try-media.ts'

export type Deployment = {
  /** Without a path. */
  readonly url: URL
  /** Of the demonstration page, or of a web call: `token=…`. */
  readonly token: string | null
  readonly sip: { readonly host: string; readonly port: number }
}

const answersWithin = 8_000
const dayMs = 86_400_000

export const deploymentChecks = ({ url, token, sip }: Deployment): readonly Check[] => [
  { name: 'name', expected: 'it leads to an address', look: () => nameOf(url) },
  { name: 'TLS', expected: 'a certificate that is believed, good for two weeks', look: () => certificateOf(url) },
  {
    name: '/health',
    expected: '200, status ok',
    look: () =>
      statusOf(url, '/health', 'The process does not answer: look at its log, and at what the proxy leads to.'),
  },
  {
    name: '/ready',
    expected: '200, ready',
    look: () =>
      statusOf(url, '/ready', 'It runs and can take no calls: the reasons are in the answer (docs/operations.md).'),
  },
  { name: 'clock', expected: 'within five seconds of this one', look: () => clockOf(url) },
  { name: 'WebSocket', expected: 'the upgrade reaches the service', look: () => upgradeOf(url) },
  { name: 'browser SDK', expected: 'modules for pages of any origin', look: () => sdkOf(url) },
  {
    name: 'sound',
    expected: 'UDP between here and the service, by ICE, DTLS and SRTP',
    look: () => (token === null ? leftOut('--token is not given: that of the page’s address') : tryMedia(url, token)),
  },
  { name: 'SIP', expected: 'an answer to OPTIONS over UDP', look: () => askBySip(sip.host, sip.port) },
]

const ask = (url: URL, path: string): Promise<Response> =>
  fetch(new URL(path, url), { signal: AbortSignal.timeout(answersWithin) })
const mendAddress = 'Mend the address, or the way to it.'

async function nameOf({ hostname }: URL): Promise<Looked> {
  const bare = hostname.replace(/^\[(.*)\]$/, '$1')
  if (net.isIP(bare)) return well(bare)
  try {
    return well((await lookup(bare, { all: true })).map(({ address }) => address).join(', '))
  } catch (error) {
    return bad(reasonOf(error), 'Let the name of the host lead to the service in DNS.')
  }
}

async function certificateOf({ protocol, hostname, port }: URL): Promise<Looked> {
  if (protocol !== 'https:')
    return doubtful(
      'none',
      'Browsers give a microphone to https pages only, this machine excepted. Set TLS_CERT and TLS_KEY, or let a proxy have one.',
    )
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const socket = tls.connect({
    host,
    port: Number(port || 443),
    ...(net.isIP(host) === 0 && { servername: host }),
    rejectUnauthorized: false,
  })
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(answersWithin) })
    const { valid_to: until } = socket.getPeerCertificate()
    const days = Math.floor((Date.parse(until) - Date.now()) / dayMs)
    if (days < 0) return bad(`expired ${-days} days ago`, 'Renew it.')
    if (!socket.authorized)
      return bad(
        `it is not believed: ${socket.authorizationError}`,
        'Serve the whole chain, of a known authority, for this very name.',
      )
    return days < 14
      ? doubtful(`${days} days left`, 'Renew it, and see why that was not done by itself.')
      : well(`${days} days left`)
  } catch (error) {
    return bad(reasonOf(error), mendAddress)
  } finally {
    socket.destroy()
  }
}

async function statusOf(url: URL, path: string, mend: string): Promise<Looked> {
  try {
    const answer = await ask(url, path)
    const body = (await answer.text()).slice(0, 300)
    return answer.ok && /"status":"(?:ok|ready)"/.test(body) ? well('200') : bad(`${answer.status} ${body}`, mend)
  } catch (error) {
    return bad(reasonOf(error), mendAddress)
  }
}

async function clockOf(url: URL): Promise<Looked> {
  const answer = await ask(url, '/health').catch(() => null)
  const date = answer?.headers.get('date') ?? null
  if (date === null) return leftOut('the answer has no date')
  // The header has whole seconds.
  const drift = Math.round((Date.parse(date) + 500 - Date.now()) / 1000)
  const got = `${Math.abs(drift)} s ${drift < 0 ? 'behind' : 'ahead'}`
  return Math.abs(drift) > 5 ? doubtful(got, 'Let both machines be set by a time server.') : well(got)
}

/** A token that never was is refused by the socket itself, in other words than those of REST, which answers a request that lost its Upgrade. */
async function upgradeOf(url: URL): Promise<Looked> {
  const address = new URL('/v1/signaling?token=none', url)
  const socketUrl = new URL(address)
  socketUrl.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  const [upgraded, plain] = await Promise.all([refusalOf(socketUrl), plainAnswerOf(address)])
  const mend = 'Let the proxy pass Upgrade and Connection on for /v1/signaling (docs/operations.md).'
  if (upgraded === null) return bad('no answer', mend)
  if (upgraded.status === 401 && upgraded.details !== plain?.details)
    return well('it reaches the service, which refuses a token that never was')
  if (upgraded.status === 429) return doubtful('this address is refused for a while', 'Try again in a few minutes.')
  return bad(`${upgraded.status} ${upgraded.details}`, mend)
}

type Answer = { readonly status: number; readonly details: string }

const detailsOf = (body: string): string => {
  try {
    const { details } = JSON.parse(body) as { details?: unknown }
    return typeof details === 'string' ? details : ''
  } catch {
    // A page of the proxy's.
    return body.slice(0, 100)
  }
}

const refusalOf = (url: URL): Promise<Answer | null> =>
  new Promise((resolve) => {
    const socket = new WebSocket(url, { handshakeTimeout: answersWithin })
    socket.on('unexpected-response', (_request, response) => {
      let body = ''
      response.on('data', (bytes: Buffer) => void (body = (body + bytes.toString()).slice(0, 2_000)))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, details: detailsOf(body) }))
    })
    socket.on(
      'open',
      () => (resolve({ status: 101, details: 'the upgrade was accepted, by somebody else' }), socket.terminate()),
    )
    socket.on('error', () => resolve(null))
  })

const plainAnswerOf = async (url: URL): Promise<Answer | null> => {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(answersWithin) })
    return { status: answer.status, details: detailsOf(await answer.text()) }
  } catch {
    // The other checks tell of that.
    return null
  }
}

async function sdkOf(url: URL): Promise<Looked> {
  try {
    const answer = await ask(url, '/parley-client.js')
    await answer.body?.cancel()
    if (!answer.ok)
      return doubtful(
        `${answer.status}`,
        'Let the proxy pass /parley-*.js and /sdk/ on to processes with the role gateway.',
      )
    const isShared = answer.headers.get('access-control-allow-origin') === '*'
    return isShared
      ? well('200, for any origin')
      : doubtful('for its own origin only', 'Let the proxy leave the CORS headers alone.')
  } catch (error) {
    return bad(reasonOf(error), mendAddress)
  }
}
