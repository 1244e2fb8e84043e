/** Owns by which way a message goes out, and what it is sent with. RFC 3261 §18.1.1, §18.2.2. */
import type { Clock } from '../../../model/clock.ts'
import { tagOf } from '../message/address.ts'
import { headerOf } from '../message/header-fields.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import { topViaOf } from '../message/via.ts'
import { writeMessage } from '../message/write-message.ts'
import type { Places } from './places.ts'
import type { StreamConnections } from './stream-connections.ts'
import { type Flow, type Target, TransportError, type Transports } from './transport.ts'
import { socketAt, type UdpSocket } from './udp-sockets.ts'
import { answerPlaceOf, withOurVia } from './via-of-way.ts'

export type SendingOptions = {
  readonly limits: {
    readonly maxUdpRequestBytes: number
    readonly connect: number
    readonly connectInstead: number
  }
  readonly places: Places
  readonly connections: StreamConnections
  readonly sockets: readonly UdpSocket[]
  readonly clock: Clock
}

type Sent = { readonly flow: Flow; readonly sent: SipRequest }

export function createSending(options: SendingOptions): Pick<Transports, 'request' | 'again' | 'respond'> {
  const { limits, places, connections, sockets, clock } = options
  const udpOnly = createUdpOnly(clock)

  async function byStream(request: SipRequest, target: Target, branch: string, timeout: number): Promise<Sent> {
    const connection = await connections.obtain(target, timeout, goesOn(request))
    const { flow } = connection
    const sent = withOurVia(request, target.protocol, places.sentBy(target), branch)
    connection.send(writeMessage(sent), request.method !== 'ACK')
    return { flow, sent }
  }

  async function request(original: SipRequest, target: Target, branch: string): Promise<Sent> {
    if (target.protocol !== 'udp') return byStream(original, target, branch, limits.connect)
    const { address } = target.remote
    const listener = places.listenerFor('udp', address)
    const socket = listener && socketAt(sockets, listener.local)
    if (!socket) throw new TransportError(`nothing listens for UDP that reaches ${address}`)
    const sent = withOurVia(original, 'udp', places.sentBy(target), branch)
    const bytes = writeMessage(sent)
    if (bytes.length > limits.maxUdpRequestBytes && mayChange(original) && !udpOnly.has(target)) {
      const instead = await byStream(original, { ...target, protocol: 'tcp' }, branch, limits.connectInstead).catch(
        () => null,
      )
      if (instead) return instead
      udpOnly.add(target)
    }
    await socket.send(bytes, target.remote)
    return {
      flow: { protocol: 'udp', remote: target.remote, local: places.localOf(listener, address), connection: 0 },
      sent,
    }
  }

  return {
    request,
    again(sent, flow) {
      // Lost, as a packet may be: what is sent again was sent before, and will be sent again.
      socketAt(sockets, flow.local)
        ?.send(writeMessage(sent), flow.remote)
        .catch(() => undefined)
    },
    async respond(response, flow) {
      const bytes = writeMessage(response)
      const place = answerPlaceOf(response, flow)
      const known = connections.find(flow)
      if (known && beginsCall(response)) known.keep()
      if (known) return known.send(bytes)
      if (flow.protocol !== 'udp') {
        const target = { protocol: flow.protocol, remote: place, serverName: topViaOf(response)?.host ?? null }
        return (await connections.obtain(target, limits.connect)).send(bytes)
      }
      const socket = socketAt(sockets, flow.local)
      if (!socket) throw new TransportError('the socket is gone')
      await socket.send(bytes, place)
    },
  }
}

/** Its peer has shown who it is before: requests within a dialog, and answers to a challenge. */
const goesOn = (request: SipRequest): boolean =>
  tagOf(request, 'To') !== null || request.headers.some(({ name }) => /^(?:proxy-)?authorization$/i.test(name))

const beginsCall = (response: SipResponse): boolean =>
  response.status >= 200 && response.status < 300 && /\bINVITE$/.test(headerOf(response, 'CSeq') ?? '')

/** ACK and CANCEL go as their INVITE went (RFC 3261 §9.1, §17.1.1.3). */
const mayChange = ({ method }: SipRequest): boolean => method !== 'ACK' && method !== 'CANCEL'

/** Ms for which a peer that took no TCP is believed to take none. */
const udpOnlyAge = 600_000
const maxUdpOnly = 1_000

/** Peers that took no TCP lately: a firewall that swallows the attempt would cost every call its time. */
function createUdpOnly({ now }: Clock) {
  const until = new Map<string, number>()
  const keyOf = ({ remote }: Target): string => `${remote.address} ${remote.port}`
  return {
    has: (target: Target): boolean => (until.get(keyOf(target)) ?? 0) > now(),
    add(target: Target): void {
      const [oldest] = until.keys()
      if (until.size >= maxUdpOnly && oldest !== undefined) until.delete(oldest)
      until.delete(keyOf(target))
      until.set(keyOf(target), now() + udpOnlyAge)
    },
  }
}
