/**
 * Owns a relay in front of the control port of a SIP server. What it cuts is the app's side only: the server goes on in the belief that its app
 * is there, as a drachtio-server behaves in effect.
 */
import { once } from 'node:events'
import net from 'node:net'
import type { Control } from '../../sip/stack.ts'

export type ControlRelay = { readonly control: Control; cut(): void; close(): Promise<void> }

export async function openControlRelay(control: Control): Promise<ControlRelay> {
  const pairs: { readonly near: net.Socket; readonly far: net.Socket }[] = []
  const relay = net.createServer((near) => {
    const far = net.connect(control.port, control.host)
    pairs.push({ near, far })
    near.on('data', (bytes) => far.write(bytes))
    far.on('data', (bytes) => near.write(bytes))
    far.on('close', () => near.destroy())
    near.on('error', () => near.destroy())
    far.on('error', () => far.destroy())
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  const { port } = relay.address() as net.AddressInfo
  return {
    control: { ...control, host: '127.0.0.1', port },
    cut: () => pairs.forEach(({ near }) => near.destroy()),
    async close() {
      for (const { near, far } of pairs) [near, far].forEach((socket) => socket.destroy())
      await new Promise((resolve) => relay.close(resolve))
    },
  }
}
