/** Owns a network between a program and its database: TCP on loopback, which can swallow everything, bring it much later, or lose a connection under a query. */
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
  let cut: { readonly text: string; left: number } = { text: '', left: 0 }
  const listener = net.createServer((near) => {
    const far = net.connect(target)
    near.on('data', (bytes) => {
      if (cut.left === 0 || !bytes.includes(cut.text)) return
      cut.left--
      for (const socket of [near, far]) socket.destroy()
    })
    for (const socket of [near, far]) sockets.add(socket.on('error', () => {}))
    near.on('data', (bytes) => void (far.destroyed || far.write(bytes))).on('end', () => far.end())
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
    /** The next `times` queries that say this lose their connection, each its own. */
    cutAt(text: string, times: number) {
      cut = { text, left: times }
      return () => cut.left
    },
    deliver: () => sockets.forEach((socket) => socket.resume()),
  }
}
