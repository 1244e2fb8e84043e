/** Owns a network between a program and its database: TCP on loopback, which can swallow everything, and bring it much later. */
import net from 'node:net'
import type { Test } from 'tap'
import type { DatabaseServer } from '../../store/sql.ts'

/** `server` is where programs find the database now. */
export async function openNetwork(t: Test, server: DatabaseServer) {
  const sockets = new Set<net.Socket>()
  const target =
    'socket' in server
      ? { path: server.socket }
      : { port: Number(new URL(server.url).port), host: new URL(server.url).hostname }
  const listener = net.createServer((near) => {
    const far = net.connect(target)
    for (const socket of [near, far]) sockets.add(socket.on('error', () => {}))
    near.on('data', (bytes) => void far.write(bytes)).on('end', () => far.end())
    far.on('data', (bytes) => void near.write(bytes)).on('end', () => near.end())
  })
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    listener.close()
  })
  const { port } = listener.address() as net.AddressInfo
  const user = 'user' in server ? `${server.user}@` : ''
  return {
    server: {
      url: `postgres://${user}127.0.0.1:${port}/${'database' in server ? server.database : new URL(server.url).pathname.slice(1)}`,
    },
    swallow: () => sockets.forEach((socket) => socket.pause()),
    deliver: () => sockets.forEach((socket) => socket.resume()),
  }
}
