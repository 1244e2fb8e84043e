/**
 * Owns open sessions of MCP clients, as the current revision knows them: a stream of `subscriptions/listen` that the server keeps open. Each has a
 * connection of its own; it is open when the server has acknowledged it.
 */
import net from 'node:net'
import { textOf, type Target } from './http-load.ts'

const acknowledged = 'notifications/subscriptions/acknowledged'
const atOnce = 50

export type Sessions = {
  /** How many the server has acknowledged. */
  readonly open: number
  close(): void
}

export async function openSessions(url: string, target: Target, count: number): Promise<Sessions> {
  const { hostname, port } = new URL(url)
  const text = textOf(target, `${hostname}:${port}`)
  const sockets: net.Socket[] = []
  for (let begun = 0; begun < count; begun += atOnce) {
    const some = Array.from({ length: Math.min(atOnce, count - begun) }, () => openOne(Number(port), hostname, text))
    sockets.push(...(await Promise.all(some)))
  }
  return {
    open: sockets.filter((socket) => !socket.destroyed).length,
    close() {
      for (const socket of sockets) socket.destroy()
    },
  }
}

async function openOne(port: number, host: string, text: Buffer): Promise<net.Socket> {
  const socket = net.connect({ port, host, noDelay: true })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let answer = ''
  socket.on('data', (chunk) => {
    if (answer.includes(acknowledged)) return
    answer += chunk.toString('latin1')
    if (answer.includes(acknowledged)) resolve()
  })
  socket.on('error', reject)
  socket.on('close', () => reject(new Error(`the session was closed: ${answer.slice(0, 1_000)}`)))
  socket.write(text)
  await promise
  socket
    .removeAllListeners('close')
    .removeAllListeners('error')
    .on('error', () => socket.destroy())
  return socket
}
