/**
 * Owns the one UDP socket that all web calls of this process share, as an ICE-lite agent: it answers connectivity checks that are
 * signed with a session's password, and from then on hands datagrams of the proven address to that session. It never sends a request,
 * asks no STUN server and resolves no name. RFC 8445 §2.5, RFC 7983.
 */
import type { RemoteInfo, Socket } from 'node:dgram'
import type { Log } from '../../model/log.ts'
import type { CandidateAddress } from '../read-sdp.ts'
import { checkedUserOf, isStun, readCheck } from './stun.ts'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'

export type MediaSocket = {
  readonly port: number
  /** Throws when the user name is taken. */
  open(credentials: Credentials, receive: (datagram: Buffer) => void): MediaPath
  /** Idempotent; open paths fall silent. */
  close(): Promise<void>
}

export type Credentials = { readonly usernameFragment: string; readonly password: string }

export type MediaPath = {
  /** To the address the client nominated; dropped while there is none. */
  send(datagram: Buffer): void
  close(): void
}

export type MediaSocketOptions = {
  readonly bindAddress: string
  /** First and last port to try, both inclusive; [0, 0] takes any free one. */
  readonly portRange: readonly [number, number]
  readonly log: Log
}

type Path = Credentials & {
  receive(datagram: Buffer): void
  /** Proven addresses by key, the oldest first. */
  readonly proven: Map<string, CandidateAddress>
  target: CandidateAddress | null
}

/** Shared by all calls. */
const receiveBufferBytes = 4 * 1024 * 1024
/** A browser checks from a handful of addresses; one that moves around pushes its oldest out. */
const maxAddresses = 8

export async function openMediaSocket(options: MediaSocketOptions): Promise<MediaSocket> {
  const socket = await bind(options)
  const byUser = new Map<string, Path>()
  const byAddress = new Map<string, Path>()
  let closing: Promise<unknown> | null = null

  function send(datagram: Buffer, to: CandidateAddress): void {
    if (closing) return
    // The callback keeps an unreachable address (ICMP, no route) from becoming an 'error' of the whole socket.
    socket.send(datagram, to.port, to.address, () => undefined)
  }

  function check(datagram: Buffer, from: CandidateAddress): void {
    const path = byUser.get(checkedUserOf(datagram) ?? '')
    const good = path && readCheck(datagram, path.password, from)
    if (!path || !good) return
    remember(path, from)
    if (good.nominates || !path.target) path.target = from
    send(good.answer, from)
  }

  function remember(path: Path, from: CandidateAddress): void {
    const key = keyOf(from)
    byAddress.set(key, path)
    path.proven.set(key, from)
    const [oldest] = path.proven.keys()
    if (path.proven.size > maxAddresses && oldest !== undefined) forget(path, oldest)
  }

  function forget(path: Path, key: string): void {
    path.proven.delete(key)
    if (byAddress.get(key) === path) byAddress.delete(key)
  }

  function receive(datagram: Buffer, { address, port }: RemoteInfo): void {
    if (isStun(datagram)) check(datagram, { address, port })
    else byAddress.get(keyOf({ address, port }))?.receive(datagram)
  }

  function open(credentials: Credentials, deliver: (datagram: Buffer) => void): MediaPath {
    const path: Path = { ...credentials, receive: deliver, proven: new Map(), target: null }
    if (byUser.has(path.usernameFragment)) throw new Error('user name fragment in use')
    byUser.set(path.usernameFragment, path)
    return {
      send: (datagram) => path.target && send(datagram, path.target),
      close() {
        if (byUser.get(path.usernameFragment) === path) byUser.delete(path.usernameFragment)
        for (const key of path.proven.keys()) forget(path, key)
        path.target = null
      },
    }
  }

  socket.on('message', receive)
  socket.on('error', (error) => options.log.error('media socket failed', { error }))
  return {
    port: socket.address().port,
    open,
    async close() {
      closing ??= closeUdp(socket)
      await closing
    },
  }
}

const keyOf = ({ address, port }: CandidateAddress): string => `${address} ${port}`

/** The first port of the range that is free. */
async function bind({ bindAddress, portRange: [first, last] }: MediaSocketOptions): Promise<Socket> {
  for (let port = first; ; port += 1) {
    try {
      return setReceiveBuffer(await bindUdp(bindAddress, port))
    } catch (error) {
      if (port >= last || !isTaken(error)) throw error
    }
  }
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
