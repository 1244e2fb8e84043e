/**
 * Owns the caller's way through the network: a full, controlling ICE agent with one UDP socket. It knows host candidates only: there is
 * no STUN or TURN server in it and no name is ever resolved. RFC 8445, RFC 7675.
 */
import type { Socket } from 'node:dgram'
import type { CandidateAddress } from '../read-sdp.ts'
import { checkedUserOf, isStun, makeCheck, readCheck, type CheckRequest } from './stun.ts'
import { bindUdp, closeUdp, sendUdp } from '../../media/rtp/udp-socket.ts'

type Credentials = { readonly usernameFragment: string; readonly password: string }

export type ControllingPathOptions = {
  readonly bindAddress: string
  /** The only address to call, whatever is offered besides. */
  readonly remoteAddress: string | undefined
  readonly localUser: string
  readonly localPassword: string
  /** Everything but STUN. */
  receive(datagram: Buffer): void
  /** Once, when a check was answered. */
  found(): void
}

export type ControllingPath = {
  /** Binds and tells the address to offer. */
  open(): Promise<CandidateAddress>
  /** Starts checking; candidates may still be added. */
  connect(remote: Credentials): void
  add(candidate: CandidateAddress): void
  /** Dropped while there is no way. */
  send(datagram: Buffer): void
  /** Idempotent. */
  close(): Promise<void>
}

/** Between two checks: quick until one is answered, then as consent. RFC 7675 §5.1. */
const checkInterval = 50
const consentInterval = 5000
const maxCandidates = 16

export function createControllingPath(options: ControllingPathOptions): ControllingPath {
  const candidates: CandidateAddress[] = []
  let socket: Socket | null = null
  let target: CandidateAddress | null = null
  let check: CheckRequest | null = null
  let timer: NodeJS.Timeout | undefined

  function transmit(datagram: Buffer, to: CandidateAddress): void {
    // Unreachable candidates are normal.
    if (socket) sendUdp(socket, datagram, to)
  }

  function connect(remote: Credentials): void {
    if (!socket) return
    // As Firefox does it: what is in use is not nominated again.
    check = makeCheck(remote, options.localUser, { nominates: target === null })
    for (const candidate of target ? [target] : candidates) transmit(check.bytes, candidate)
    timer = setTimeout(() => connect(remote), target ? consentInterval : checkInterval)
  }

  /** A peer that is no ICE-lite one sends nothing before its own checks were answered. RFC 8445 §7.3. */
  function answerCheck(datagram: Buffer, from: CandidateAddress): void {
    const good = readCheck(datagram, options.localPassword, from)
    if (good) transmit(good.answer, from)
  }

  function receive(datagram: Buffer, { address, port }: CandidateAddress): void {
    if (!isStun(datagram)) return options.receive(datagram)
    if (checkedUserOf(datagram) === options.localUser) return answerCheck(datagram, { address, port })
    if (target || !check?.isAnsweredBy(datagram)) return
    target = { address, port }
    options.found()
  }

  return {
    async open() {
      const opening = await bindUdp(options.bindAddress, 0)
      socket = opening.on('message', receive)
      return { address: options.bindAddress, port: opening.address().port }
    },
    connect,
    add(candidate) {
      const isWanted = candidate.address === (options.remoteAddress ?? candidate.address)
      if (isWanted && candidates.length < maxCandidates) candidates.push(candidate)
    },
    send: (datagram) => target && transmit(datagram, target),
    async close() {
      clearTimeout(timer)
      const closing = socket
      socket = null
      if (closing) await closeUdp(closing)
    },
  }
}
