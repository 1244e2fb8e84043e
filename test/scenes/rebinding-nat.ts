/** Owns a NAT between a client and the service that gives the client another port whenever a test says so, and a stranger on the way who listens. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { Test } from 'tap'
import { readSdp } from '../../gateway/read-sdp.ts'
import { isRtcp } from '../../media/rtp/rtp-wire.ts'
import { createRandom } from '../fake/random.ts'

export type Nat = {
  /** The service's answer as the client is to see it: it leads through here. */
  through(answer: string): string
  /** From here on the client has another port outside; what is sent to the one before is lost. */
  rebind(): Promise<void>
  /** What came from the client, the newest last. */
  readonly passed: readonly Buffer[]
  /** From here on nothing else of the client passes. */
  only(mayPass: (datagram: Buffer) => boolean): void
  /** This share of all sound gets lost by chance, both ways. */
  lose(share: number): void
  /** A stranger who can forge the client's address sends something. */
  forge(datagram: Buffer): void
  readonly stranger: {
    /** From an address of its own. */
    send(datagram: Buffer): void
    /** What the service sent there. */
    readonly got: readonly Buffer[]
  }
}

type Stage = Pick<Test, 'teardown'>

/** All on `address`, where the service has a candidate as well. */
export async function openNat(t: Stage, address = '127.0.0.1'): Promise<Nat> {
  const passed: Buffer[] = []
  const got: Buffer[] = []
  let mayPass: (datagram: Buffer) => boolean = () => true
  let servicePort = 0
  let isClosed = false
  const open = async (): Promise<Socket> => {
    const socket = await bound(address)
    t.teardown(() => {
      isClosed = true
      socket.close()
    })
    return socket
  }
  const [inside, outsider] = [await open(), await open()]
  let outside = await open()
  let client: { readonly port: number; readonly address: string } | null = null

  const random = createRandom(7)
  let share = 0
  const isLost = (datagram: Buffer): boolean => datagram[0]! >> 6 === 2 && !isRtcp(datagram) && random.next() < share
  const back = (datagram: Buffer): void => {
    if (client && !isClosed && !isLost(datagram)) inside.send(datagram, client.port, client.address)
  }
  inside.on('message', (datagram, from) => {
    client = from
    passed.push(datagram)
    if (mayPass(datagram) && !isClosed && !isLost(datagram)) outside.send(datagram, servicePort, address)
  })
  outside.on('message', back)
  outsider.on('message', (datagram) => got.push(datagram))
  return {
    through(answer) {
      const candidate = readSdp(answer, ['passive']).candidates.find((one) => one.address === address)
      if (!candidate) throw new Error(`nothing on ${address} is offered`)
      servicePort = candidate.port
      const others = answer.split('\r\n').filter((line) => !line.startsWith('a=candidate:'))
      const end = others.indexOf('a=end-of-candidates')
      others.splice(end, 0, `a=candidate:1 1 udp 2130706431 ${address} ${inside.address().port} typ host`)
      return others.join('\r\n')
    },
    async rebind() {
      outside.off('message', back)
      outside = await open()
      outside.on('message', back)
    },
    forge: (datagram) => outside.send(datagram, servicePort, address),
    passed,
    only: (next) => void (mayPass = next),
    lose: (next) => void (share = next),
    stranger: { send: (datagram) => outsider.send(datagram, servicePort, address), got },
  }
}

async function bound(address: string): Promise<Socket> {
  const socket = createSocket('udp4').bind(0, address)
  await once(socket, 'listening')
  return socket
}
