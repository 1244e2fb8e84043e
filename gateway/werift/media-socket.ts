/**
 * Owns the UDP socket (one of each family) that all web calls of this process share, as an ICE-lite agent: it answers connectivity checks that are
 * signed with a session's password, and from then on hands datagrams of that address to that session, unless another call lives there.
 * Media of a client that NAT moved is known by its SSRC and has to prove itself. It never sends a request, asks no STUN server and resolves no name. RFC 8445 §2.5,
 * RFC 7983.
 */
import type { RemoteInfo, Socket } from 'node:dgram'
import type { Log } from '../../model/log.ts'
import { familyOf, type Family } from '../../net/addresses.ts'
import type { CandidateAddress } from '../read-sdp.ts'
import { boundAddresses, type MediaAddresses } from './offered-addresses.ts'
import { createAddressBook, type Claim } from './address-book.ts'
import { createPathAim, type PathAim } from './path-aim.ts'
import { createSeenChecks, type SeenChecks } from './seen-checks.ts'
import { checkedUserOf, isStun, readCheck } from './stun.ts'
import { createRateLimit, perSecond } from '../../net/token-bucket.ts'
import { createDatagramGuard } from '../../media/rtp/datagram-guard.ts'
import { ssrcOf } from '../../media/rtp/rtp-wire.ts'
import { bindUdp, closeUdp, isPort, sendUdp } from '../../media/rtp/udp-socket.ts'

export type MediaSocket = {
  readonly port: number
  /** Null: nothing is bound of that family. */
  portOf(family: Family): number | null
  /** `checked`: the client sent a good check, by which it consents (RFC 7675). Throws when the user name is taken. */
  open(credentials: Credentials, receive: Receive, checked?: () => void): MediaPath
  /** Idempotent; open paths fall silent. */
  close(): Promise<void>
}

export type Credentials = { readonly usernameFragment: string; readonly password: string }

type Receive = (datagram: Buffer, from: CandidateAddress) => void

export type MediaPath = Pick<PathAim, 'isTarget'> & {
  /** To where the client is; dropped while that is not known. */
  send(datagram: Buffer): void
  /** To an address that a datagram of this call came from. */
  sendTo(datagram: Buffer, to: CandidateAddress): void
  /** No check of this call came from any other address. */
  isOnly(from: CandidateAddress): boolean
  /** The client proved itself there by DTLS: from here on media does, and checks move nothing. */
  secured(from: CandidateAddress): void
  /** Authentic media came from there, newer than all before, from a source of this SSRC. */
  heard(from: CandidateAddress, ssrc: number): void
  /** ICE begins anew under these; those before are good until the client uses these. RFC 8445 §9. Throws when the user name is taken. */
  renew(credentials: Credentials): void
  /** The client has used the newest credentials. */
  isReached(): boolean
  close(): void
}

export type MediaSocketOptions = MediaAddresses & {
  /** First and last port to try, both inclusive; [0, 0] takes any free one. */
  readonly portRange: readonly [number, number]
  readonly log: Log
  /** Milliseconds that never jump. */
  readonly now?: () => number
}

type Path = {
  readonly receive: Receive
  readonly checked: () => void
  readonly aim: PathAim
  readonly seen: SeenChecks
  readonly mayProve: (at: number) => boolean
  /** Checks, before anything is computed: from addresses that are known, and from all others. */
  readonly mayCheck: { readonly known: (at: number) => boolean; readonly other: (at: number) => boolean }
  /** The newest first; at most two. */
  credentials: readonly Credentials[]
  isReached: boolean
  /** Proven addresses by key, the one that was heard longest ago first. */
  readonly proven: Map<string, CandidateAddress>
  /** Those of them that were proven before the last restart, and not since: late media from there leads nowhere. */
  former: ReadonlySet<string>
  readonly ssrcs: Set<number>
}

/** Shared by all calls. */
const receiveBufferBytes = 4 * 1024 * 1024
/** A browser checks from a handful of addresses; one that moves around pushes its oldest out. */
const maxAddresses = 8
/** Of one client; one is usual. */
const maxSsrcs = 4
/** Datagrams a second from addresses that are not known, which have to be decrypted to be told. */
const unknownPerSecond = 20
/** Checks a second of one call. A browser sends one every 50 ms at most, from each of its addresses. */
const checksPerSecond = 50

export async function openMediaSocket(options: MediaSocketOptions): Promise<MediaSocket> {
  const { now = () => performance.now() } = options
  const sockets = await bind(options)
  const [{ port }] = sockets
  const byUser = new Map<string, Path>()
  const book = createAddressBook<Path>()
  const bySsrc = new Map<number, Path>()
  let closing: Promise<unknown> | null = null

  function send(datagram: Buffer, to: CandidateAddress): void {
    if (closing) return
    const bound = boundOf(sockets, familyOf(to.address))
    if (bound) sendUdp(bound.socket, datagram, to)
  }

  function check(datagram: Buffer, from: CandidateAddress): void {
    const user = checkedUserOf(datagram) ?? ''
    const path = byUser.get(user)
    const [newest, former] = path?.credentials ?? []
    const credentials = newest?.usernameFragment === user ? newest : former
    if (!path || !credentials || !mayCheck(path, from)) return
    const good = readCheck(datagram, credentials.password, from)
    if (!good || !path.seen.take(good.transactionId, keyOf(from))) return
    if (!remember(path, from, path.aim.isSecured() ? 'hint' : 'checked')) return
    if (credentials === newest) reach(path, newest, from)
    path.aim.checked(from)
    path.checked()
    send(good.answer, from)
  }

  function mayCheck({ mayCheck: { known, other }, proven }: Path, from: CandidateAddress): boolean {
    return (proven.has(keyOf(from)) ? known : other)(now())
  }

  /** Those before are of no use any more. */
  function reach(path: Path, newest: Credentials, from: CandidateAddress): void {
    if (!path.isReached) path.former = new Set(path.proven.keys())
    path.isReached = true
    if (path.former.has(keyOf(from))) path.former = new Set([...path.former].filter((key) => key !== keyOf(from)))
    for (const { usernameFragment } of path.credentials.slice(1)) byUser.delete(usernameFragment)
    path.credentials = [newest]
  }

  /** False: another call lives there. */
  function remember(path: Path, from: CandidateAddress, claim: Claim): boolean {
    const key = keyOf(from)
    if (!book.claim(key, path, claim, now())) return false
    path.proven.delete(key)
    path.proven.set(key, from)
    if (path.proven.size <= maxAddresses) return true
    const oldest = [...path.proven].find(([known, address]) => known !== key && !path.aim.isTarget(address))
    if (oldest) forget(path, oldest[0])
    return true
  }

  function forget(path: Path, key: string): void {
    path.proven.delete(key)
    book.release(key, path)
  }

  function receive(datagram: Buffer, { address, port }: RemoteInfo): void {
    if (!isPort(port)) return
    const from = { address, port }
    if (isStun(datagram)) return check(datagram, from)
    const entry = book.ownerOf(keyOf(from))
    if (entry?.claim === 'authentic') return entry.owner.receive(datagram, from)
    // Nothing but a check speaks for the address: who has sent under that SSRC before is asked first.
    if (!receiveFromElsewhere(datagram, from, entry?.owner)) entry?.owner.receive(datagram, from)
  }

  /**
   * NAT may move a client seconds before its next check. Whoever else sends under its SSRC costs little and is told nothing. True: it was
   * that client.
   */
  function receiveFromElsewhere(datagram: Buffer, from: CandidateAddress, owner: Path | undefined): boolean {
    const path = bySsrc.get(ssrcOf(datagram) ?? -1)
    if (!path || path === owner || !path.mayProve(now())) return false
    path.receive(datagram, from)
    return book.ownerOf(keyOf(from))?.owner === path
  }

  function heard(path: Path, from: CandidateAddress, ssrc: number): void {
    if (path.former.has(keyOf(from)) || !remember(path, from, 'authentic')) return
    path.aim.heard(from)
    if (bySsrc.has(ssrc) || path.ssrcs.size >= maxSsrcs) return
    bySsrc.set(ssrc, path)
    path.ssrcs.add(ssrc)
  }

  function renew(path: Path, credentials: Credentials): void {
    if (byUser.has(credentials.usernameFragment)) throw new Error('user name fragment in use')
    const [current, former] = path.credentials
    if (former) byUser.delete(former.usernameFragment)
    byUser.set(credentials.usernameFragment, path)
    path.credentials = current ? [credentials, current] : [credentials]
    path.isReached = false
  }

  function close(path: Path): void {
    for (const { usernameFragment } of path.credentials) byUser.delete(usernameFragment)
    for (const key of path.proven.keys()) forget(path, key)
    for (const ssrc of path.ssrcs) bySsrc.delete(ssrc)
    path.credentials = []
  }

  function open(credentials: Credentials, deliver: Receive, checked: () => void = () => undefined): MediaPath {
    const path = createPath(deliver, checked)
    renew(path, credentials)
    const isOpen = (): boolean => path.credentials.length > 0
    return {
      isTarget: path.aim.isTarget,
      isOnly: (from) => path.proven.size === 1 && path.proven.has(keyOf(from)),
      secured(from) {
        remember(path, from, 'authentic')
        path.aim.secured(from)
      },
      send(datagram) {
        const target = isOpen() ? path.aim.target() : null
        if (target) send(datagram, target)
      },
      sendTo: (datagram, to) => isOpen() && send(datagram, to),
      heard: (from, ssrc) => isOpen() && heard(path, from, ssrc),
      renew: (next) => isOpen() && renew(path, next),
      isReached: () => path.isReached,
      close: () => close(path),
    }
  }

  const guarded = createDatagramGuard({ now, log: options.log })
  for (const { socket } of sockets) {
    socket.on('message', guarded(receive))
    socket.on('error', (error) => options.log.error('media socket failed', { error }))
  }
  return {
    port,
    portOf: (family) => boundOf(sockets, family)?.port ?? null,
    open,
    async close() {
      closing ??= Promise.all(sockets.map(({ socket }) => closeUdp(socket)))
      await closing
    },
  }
}

const createPath = (receive: Receive, checked: () => void): Path => ({
  receive,
  checked,
  aim: createPathAim(),
  seen: createSeenChecks(),
  mayProve: createRateLimit(perSecond(unknownPerSecond)),
  mayCheck: { known: createRateLimit(perSecond(checksPerSecond)), other: createRateLimit(perSecond(checksPerSecond)) },
  credentials: [],
  isReached: false,
  proven: new Map(),
  former: new Set(),
  ssrcs: new Set(),
})

const keyOf = ({ address, port }: CandidateAddress): string => `${address} ${port}`

type Bound = { readonly socket: Socket; readonly family: Family; readonly port: number }
type Sockets = readonly [Bound, ...Bound[]]

const boundOf = (sockets: Sockets, family: Family): Bound | null =>
  sockets.find((bound) => bound.family === family) ?? null

/** The first port of the range that is free, for all families. */
async function bind(options: MediaSocketOptions): Promise<Sockets> {
  const [first, last] = options.portRange
  for (let port = first; ; port += 1) {
    try {
      return await bindAll(boundAddresses(options), port)
    } catch (error) {
      if (port >= last || !isTaken(error)) throw error
    }
  }
}

/** Of several addresses those that this machine has: it may have no IPv6, or nothing else. */
async function bindAll(addresses: readonly string[], port: number): Promise<Sockets> {
  const tried = await Promise.allSettled(addresses.map((address) => bindOne(address, port, addresses.length > 1)))
  const [first, ...others] = tried.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const errors = tried.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  const taken = errors.find(isTaken)
  if (first && taken === undefined) return [first, ...others]
  for (const bound of first ? [first, ...others] : []) await closeUdp(bound.socket)
  throw taken ?? errors[0]
}

async function bindOne(address: string, port: number, ipv6Only: boolean): Promise<Bound> {
  const socket = setReceiveBuffer(await bindUdp(address, port, { ipv6Only }))
  return { socket, family: familyOf(address), port: socket.address().port }
}

/** The system may allow less; then what it allows must do. */
function setReceiveBuffer(socket: Socket): Socket {
  try {
    socket.setRecvBufferSize(receiveBufferBytes)
  } catch {
    // A socket without a larger buffer still works.
  }
  return socket
}

const isTaken = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
