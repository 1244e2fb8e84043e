/** Owns calls of the load by telephone: one way of signaling for all of a process, a UDP socket of its own for the sound of each. */
import { randomInt } from 'node:crypto'
import { isIP } from 'node:net'
import { lookup } from 'node:dns/promises'
import { isRtcp, readRtp } from '../../media/rtp/rtp-wire.ts'
import { bindUdp, closeUdp, sendUdp } from '../../media/rtp/udp-socket.ts'
import type { RtpPacket } from '../../model/rtp-transport.ts'
import { openRawSipCaller, type Told } from '../callers/raw-sip-caller.ts'
import type { SipTarget } from '../callers/sip-socket.ts'
import { orCannot } from '../cannot.ts'
import type { AllowedHosts } from './allowed-hosts.ts'
import type { LoadLine } from './load-line.ts'
import type { SipSide } from './load-job.ts'

export type SipLines = {
  /** Rejects when it is refused. */
  open(told?: Told): Promise<LoadLine>
  /** Idempotent. */
  close(): Promise<void>
}

/** Rejects with Cannot where the host takes no connection. */
export const reached = <Way>({ protocol, host, port }: SipTarget, open: () => Promise<Way>): Promise<Way> =>
  orCannot(`sip:${host}:${port} cannot be reached by ${protocol}`, open)

export async function openSipLines(side: SipSide, allowed: AllowedHosts): Promise<SipLines> {
  const caller = await reached(side.target, () => openRawSipCaller({ port: side.target.port, ...side }))
  return {
    close: caller.close,
    async open(told) {
      const sound = await openSound(caller.local().address)
      try {
        const call = await caller.call(sound.port, told)
        const isNamed = isIP(call.remote.address) === 0
        const address = isNamed ? (await lookup(call.remote.address)).address : call.remote.address
        if (!allowed.allows(address)) {
          await call.hangUp()
          allowed.check(address, 'the sound of the call')
        }
        sound.sendTo({ address, port: call.remote.port })
        return {
          callId: null,
          audio: { payloadType: 0, clockRateHz: 8000, codec: 'pcmu' },
          onPacket: sound.onPacket,
          send: sound.send,
          ended: call.ended.then(() => 'the other side hung up'),
          async hangUp() {
            await call.hangUp()
            await sound.close()
          },
        }
      } catch (error) {
        await sound.close()
        throw error
      }
    },
  }
}

/** The wire of one call: RTP of one stream, both ways. */
export async function openSound(address: string) {
  const socket = await bindUdp(address, 0)
  socket.on('error', () => undefined)
  const ssrc = randomInt(2 ** 32)
  let hear: (packet: RtpPacket) => void = () => undefined
  let remote: { readonly address: string; readonly port: number } | null = null
  let closing: Promise<void> | null = null
  socket.on('message', (datagram) => {
    const packet = isRtcp(datagram) ? null : readRtp(datagram)
    if (packet) hear(packet)
  })
  return {
    port: socket.address().port,
    sendTo: (place: { readonly address: string; readonly port: number }) => void (remote = place),
    onPacket: (listener: (packet: RtpPacket) => void) => void (hear = listener),
    send(packet: RtpPacket): void {
      if (remote && !closing) sendUdp(socket, rtpOf(packet, ssrc), remote)
    },
    close: () => (closing ??= closeUdp(socket)),
  }
}

function rtpOf({ payloadType, marker, sequenceNumber, timestamp, payload }: RtpPacket, ssrc: number): Buffer {
  const bytes = Buffer.allocUnsafe(12 + payload.length)
  bytes[0] = 0x80
  bytes[1] = payloadType | (marker ? 0x80 : 0)
  bytes.writeUInt16BE(sequenceNumber & 0xffff, 2)
  bytes.writeUInt32BE(timestamp >>> 0, 4)
  bytes.writeUInt32BE(ssrc, 8)
  bytes.set(payload, 12)
  return bytes
}
