/**
 * Owns the floor under the telephone benches, in a process of its own: one bare UDP socket per call that sends back what comes, at once. There is
 * no less that a program on node's sockets can do for a call.
 */
import type { Socket } from 'node:dgram'
import process from 'node:process'
import { createPortRange } from '../../media/rtp/port-range.ts'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'

/** As the service takes its ports: even ones, at random. */
const portRange = [34_000, 39_998] as const
const open: Socket[] = []
const ignore = (): void => undefined

async function openEchoes(count: number): Promise<number[]> {
  await Promise.all(open.splice(0).map(closeUdp))
  const range = createPortRange(portRange, Math.random)
  for (let port = range.take(); port !== null && open.length < count; port = range.take()) {
    // Somebody else may have it.
    const socket = await bindUdp('127.0.0.1', port).catch(() => null)
    if (!socket) continue
    socket.on('message', (datagram, from) => socket.send(datagram, from.port, from.address, ignore))
    open.push(socket)
  }
  return open.map((socket) => socket.address().port)
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

async function answer(question: unknown): Promise<void> {
  const count = /^open (\d+)$/.exec(String(question))?.[1]
  if (count !== undefined) return void process.send?.({ ports: await openEchoes(Number(count)) })
  if (question === 'read') return void process.send?.({ cpuMs: cpuMs() })
  await openEchoes(0)
  process.disconnect()
}

// Whoever asked is gone.
process.once('disconnect', () => process.exit())
process.on('message', (question) => void answer(question))
process.send?.({})
