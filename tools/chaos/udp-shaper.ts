/**
 * Owns a bad way between callers and the service: datagrams of sound that get lost or come late, by lot. Telephones and browsers send by the same
 * shaper, so that one turn of it is the weather for all. Nothing of signaling passes here.
 */
import type { Socket } from 'node:dgram'
import type { Clock } from '../../model/clock.ts'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'
import type { SocketPair, UdpPort } from '../../media/rtp/socket-pair.ts'
import type { Random } from './random.ts'

export type Weather = {
  /** 0–1: the share of datagrams that is lost. */
  readonly loss: number
  /** Ms that each takes longer. */
  readonly delay: number
  /** Ms more, up to so many, by lot: what comes later than its follower is out of order. */
  readonly jitter: number
}

export const fairWeather: Weather = { loss: 0, delay: 0, jitter: 0 }

export type UdpShaper = {
  turn(weather: Weather): void
  /** Both ways of a telephone's sockets. */
  shape(pair: SocketPair): SocketPair
  /** A port of loopback that passes to `target` what comes, and what that answers back to who sent last. */
  relay(target: { readonly address: string; readonly port: number }): Promise<Relay>
  /** How many datagrams were lost and late. */
  counts(): { readonly lost: number; readonly late: number }
}

export type Relay = {
  readonly port: number
  /** Idempotent. */
  close(): Promise<void>
}

const host = '127.0.0.1'

export function createUdpShaper({ random, clock }: { readonly random: Random; readonly clock: Clock }): UdpShaper {
  let weather = fairWeather
  const counts = { lost: 0, late: 0 }

  /** Runs `pass` now, later, or never. */
  function fare(pass: () => void): void {
    const { loss, delay, jitter } = weather
    if (loss > 0 && random.next() < loss) return void counts.lost++
    if (delay + jitter === 0) return pass()
    counts.late++
    clock.after(delay + random.next() * jitter, pass)
  }
  const shapedPort = (port: UdpPort): UdpPort => ({
    ...port,
    send(datagram, to) {
      // Whoever sends may use its buffer again.
      const kept = weather === fairWeather ? datagram : Buffer.from(datagram)
      fare(() => port.send(kept, to))
    },
    onDatagram: (listener) =>
      port.onDatagram((datagram, from) => {
        const kept = weather === fairWeather ? datagram : Buffer.from(datagram)
        fare(() => listener(kept, from))
      }),
  })
  return {
    turn: (next) => void (weather = next),
    shape: (pair) => ({ ...pair, rtp: shapedPort(pair.rtp), rtcp: shapedPort(pair.rtcp) }),
    relay: (target) => openRelay(target, fare),
    counts: () => ({ ...counts }),
  }
}

async function openRelay(
  target: { readonly address: string; readonly port: number },
  fare: (pass: () => void) => void,
): Promise<Relay> {
  const [near, far] = [await bindUdp(host, 0), await bindUdp(host, 0)]
  let caller: { readonly address: string; readonly port: number } | null = null
  let isOpen = true
  const pass = (socket: Socket, bytes: Buffer, to: { readonly address: string; readonly port: number }): void =>
    // The callback takes what the network says of a peer that is gone.
    fare(() => isOpen && socket.send(bytes, to.port, to.address, () => undefined))
  near.on('message', (bytes, from) => {
    caller = from
    pass(far, bytes, target)
  })
  far.on('message', (bytes) => caller && pass(near, bytes, caller))
  for (const socket of [near, far]) socket.on('error', () => undefined)
  let closing: Promise<unknown> | null = null
  return {
    port: near.address().port,
    async close() {
      isOpen = false
      closing ??= Promise.all([closeUdp(near), closeUdp(far)])
      await closing
    },
  }
}
