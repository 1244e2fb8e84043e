/** Owns the UDP ports of phone calls on this node: each call takes a pair and gives it back. */
import { networkInterfaces } from 'node:os'
import type { Log } from '../../model/log.ts'
import { type Family, familyOf, isLinkLocal, isWildcard, loopbackOf, plainAddressOf } from '../../net/addresses.ts'
import { createPortRange } from './port-range.ts'
import { createRtpEndpoint, type RtpEndpoint, type RtpEndpointHandlers } from './rtp-endpoint.ts'
import { freeEvenPort, openSocketPair, type SocketPair } from './socket-pair.ts'

export type MediaPortsOptions = {
  /** Of this host, IPv4 or IPv6; a wildcard listens on all. */
  readonly bindAddress: string
  /** By which peers reach this host when that is another one (NAT); null: as bound. */
  readonly externalAddress: string | null
  /** First and last UDP port, inclusive; [0, 0] takes any free ones. */
  readonly portRange: readonly [number, number]
  /** The ticker's own time: milliseconds that never jump. */
  readonly now: () => number
  readonly log: Log
}

export type MediaPorts = {
  /** Rejects with NoPortsLeft, or with what the system says (no such address). */
  open(handlers: RtpEndpointHandlers): Promise<RtpEndpoint>
  /** By which peers of a family reach the sockets: one for both families has an address of each. Null: they do not. */
  addressFor(family: Family): string | null
  /** Calls that have a pair of ports. */
  inUse(): number
  /** Closes what is open. Idempotent. */
  close(): Promise<void>
}

export class NoPortsLeft extends Error {
  override readonly name = 'NoPortsLeft'
}

export function createMediaPorts(options: MediaPortsOptions): MediaPorts {
  const { bindAddress, externalAddress, portRange, now, log } = options
  const pairs = createPairs(bindAddress, portRange)
  const endpoints = new Set<RtpEndpoint>()
  const opening = new Set<Promise<unknown>>()
  let isClosed = false

  function endpointOn(pair: SocketPair, handlers: RtpEndpointHandlers): RtpEndpoint {
    const address = externalAddress ?? reachableAddressOf(bindAddress)
    const closed = (): void => {
      endpoints.delete(endpoint)
      pairs.giveBack(pair.port)
    }
    const endpoint = createRtpEndpoint({ pair, address, handlers, now, log, closed })
    endpoints.add(endpoint)
    return endpoint
  }

  async function open(handlers: RtpEndpointHandlers): Promise<RtpEndpoint> {
    if (isClosed) throw new Error(closedMessage)
    const pair = await pairs.open()
    const endpoint = endpointOn(pair, handlers)
    if (!isClosed) return endpoint
    // Meanwhile.
    await endpoint.close()
    throw new Error(closedMessage)
  }

  return {
    open(handlers) {
      const endpoint = open(handlers)
      const settled = endpoint.then(noop, noop).finally(() => opening.delete(settled))
      opening.add(settled)
      return endpoint
    },
    addressFor: (family) => addressFor(family, options),
    inUse: () => endpoints.size,
    async close() {
      isClosed = true
      await Promise.all([...opening, ...[...endpoints].map((endpoint) => endpoint.close())])
    },
  }
}

const closedMessage = 'the media ports are closed'
const noop = (): void => undefined

type Pairs = { open(): Promise<SocketPair>; giveBack(port: number): void }

/** A free port may be taken all the same: by another program, or by its RTCP half. It is passed over, and is free for the next call. */
function createPairs(bindAddress: string, [first, last]: readonly [number, number]): Pairs {
  if (first === 0) return { open: () => openAnywhere(bindAddress), giveBack: () => undefined }
  const range = createPortRange([first, last], Math.random)

  async function open(): Promise<SocketPair> {
    const passedOver: number[] = []
    try {
      for (let port = range.take(); port !== null; port = range.take()) {
        const pair = await unlessTaken(openSocketPair(bindAddress, port))
        if (pair) return pair
        passedOver.push(port)
      }
    } finally {
      passedOver.forEach(range.giveBack)
    }
    throw new NoPortsLeft(`all ${range.size} pairs of RTP ports from ${first} to ${last} are in use`)
  }
  return { open, giveBack: range.giveBack }
}

/** The system's ports: several tries, because the next one may be taken. */
async function openAnywhere(bindAddress: string): Promise<SocketPair> {
  for (let left = 50; left > 0; left -= 1) {
    const pair = await unlessTaken(openSocketPair(bindAddress, await freeEvenPort(bindAddress)))
    if (pair) return pair
  }
  throw new NoPortsLeft('the system has no two free UDP ports side by side')
}

/** Null: somebody has the port, or the system keeps it for itself. */
async function unlessTaken(opening: Promise<SocketPair>): Promise<SocketPair | null> {
  try {
    return await opening
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    if (code === 'EADDRINUSE' || code === 'EACCES') return null
    throw error
  }
}

/** Where it is listened on and how that is reached. */
export type Reached = Pick<MediaPortsOptions, 'bindAddress' | 'externalAddress'>

/** By which peers of a family reach the sockets; see MediaPorts. */
export function addressFor(family: Family, { bindAddress, externalAddress }: Reached): string | null {
  const usual = externalAddress ?? reachableAddressOf(bindAddress)
  if (familyOf(usual) === family) return usual
  return plainAddressOf(bindAddress) === '::' ? seenAddressOf(family) : null
}

/** A wildcard is nowhere to send to: then it is the first address of this host that others see. */
function reachableAddressOf(bindAddress: string): string {
  const plain = plainAddressOf(bindAddress) ?? bindAddress
  if (!isWildcard(plain)) return plain
  const family = familyOf(plain)
  return seenAddressOf(family) ?? loopbackOf(family)
}

function seenAddressOf(family: Family): string | null {
  const [found] = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    // Link-local addresses need a scope that SDP cannot carry.
    .filter((one) => familyOf(one.address) === family && !one.internal && !isLinkLocal(one.address))
  return found?.address ?? null
}
