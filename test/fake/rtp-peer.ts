/** Owns a media peer of bare UDP sockets: it sends what a test says, byte for byte, and keeps what comes. */
import type { RemoteInfo, Socket } from 'node:dgram'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'

export type RtpShape = {
  readonly sequenceNumber: number
  readonly payloadType?: number
  readonly timestamp?: number
  readonly ssrc?: number
  readonly marker?: boolean
  readonly payload?: string | Uint8Array
}

export type RtpPeer = {
  readonly local: { readonly address: string; readonly port: number; readonly rtcpPort: number }
  /** Each resolves when the datagram has left. */
  send(to: { readonly address: string; readonly port: number }, packet: RtpShape | Buffer): Promise<void>
  sendRtcp(to: { readonly address: string; readonly port: number }, compound: Buffer): Promise<void>
  /** The next one that nobody has taken yet, with the port it came from. */
  next(): Promise<Arrived>
  nextRtcp(): Promise<Arrived>
  /** Not taken yet. */
  waiting(): number
  close(): Promise<void>
}

type Arrived = { readonly bytes: Buffer; readonly port: number }

/** Sequence numbers count packets of 20 ms at 8 kHz where no timestamp is given. */
export function rtpOf({ sequenceNumber, payloadType = 0, ssrc = 7, marker = false, ...rest }: RtpShape): Buffer {
  const { timestamp = (sequenceNumber * 160) >>> 0, payload = 'sound' } = rest
  const header = Buffer.alloc(12)
  header[0] = 0x80
  header[1] = payloadType | (marker ? 0x80 : 0)
  header.writeUInt16BE(sequenceNumber, 2)
  header.writeUInt32BE(timestamp, 4)
  header.writeUInt32BE(ssrc, 8)
  return Buffer.concat([header, Buffer.from(payload)])
}

export async function createRtpPeer(address = '127.0.0.1'): Promise<RtpPeer> {
  const [rtp, rtcp] = [await bindUdp(address, 0), await bindUdp(address, 0)]
  const [sounds, reports] = [createInbox(rtp), createInbox(rtcp)]
  return {
    local: { address, port: rtp.address().port, rtcpPort: rtcp.address().port },
    send: (to, packet) => sendFrom(rtp, Buffer.isBuffer(packet) ? packet : rtpOf(packet), to),
    sendRtcp: (to, compound) => sendFrom(rtcp, compound, to),
    next: sounds.next,
    nextRtcp: reports.next,
    waiting: sounds.waiting,
    close: async () => void (await Promise.all([closeUdp(rtp), closeUdp(rtcp)])),
  }
}

const sendFrom = (socket: Socket, bytes: Buffer, to: { address: string; port: number }): Promise<void> =>
  new Promise((resolve, reject) =>
    socket.send(bytes, to.port, to.address, (error) => (error ? reject(error) : resolve())),
  )

function createInbox(socket: Socket) {
  const arrived: Arrived[] = []
  const asked: ((datagram: Arrived) => void)[] = []
  socket.on('message', (bytes: Buffer, { port }: RemoteInfo) => {
    const ask = asked.shift()
    if (ask) ask({ bytes, port })
    else arrived.push({ bytes, port })
  })
  return {
    waiting: () => arrived.length,
    next: () =>
      new Promise<Arrived>((resolve) => {
        const first = arrived.shift()
        if (first) resolve(first)
        else asked.push(resolve)
      }),
  }
}
