/** Owns a NAT between a client and the service that gives the client another port whenever a test says so, and a stranger on the way who listens. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { Test } from 'tap'
import { readSdp } from '../../gateway/read-sdp.ts'

export type Nat = {
  /** The service's answer as the client is to see it: it leads through here. */
  through(answer: string): string
  /** From here on the client has another port outside; what is sent to the one before is lost. */
  rebind(): Promise<void>
  /** What came from the client, the newest last. */
  readonly passed: readonly Buffer[]
  /** False keeps back what it fits. */
  only(mayPass: (datagram: Buffer) => boolean): void
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
  const inside = await bound(t, address)
  const outsider = await bound(t, address)
  let outside = await bound(t, address)
  let mayPass: (datagram: Buffer) => boolean = () => true
  let servicePort = 0
  let client: { readonly port: number; readonly address: string } | null = null

  const back = (datagram: Buffer): void => void (client && inside.send(datagram, client.port, client.address))
  inside.on('message', (datagram, from) => {
    client = from
    passed.push(datagram)
    if (mayPass(datagram)) outside.send(datagram, servicePort, address)
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
      outside = await bound(t, address)
      outside.on('message', back)
    },
    passed,
    only: (next) => void (mayPass = next),
    stranger: { send: (datagram) => outsider.send(datagram, servicePort, address), got },
  }
}

async function bound(t: Stage, address: string): Promise<Socket> {
  const socket = createSocket('udp4').bind(0, address)
  await once(socket, 'listening')
  t.teardown(() => void socket.close())
  return socket
}
