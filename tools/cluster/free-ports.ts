/** Owns ports of loopback for processes that are told theirs and keep them over a restart. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'

const host = '127.0.0.1'
const lowest = 20_000
const highest = 29_000

/** So many in a row that nobody has at this moment, neither by TCP nor by UDP. `from` is where to begin to look. */
export async function freePorts(count: number, from = lowest + (process.pid % 80) * 100): Promise<number> {
  for (let first = from; first + count <= highest; first += count) {
    const wanted = Array.from({ length: count }, (_, index) => first + index)
    const free = await Promise.all(wanted.map(isFree))
    if (free.every(Boolean)) return first
  }
  throw new Error(`no ${count} ports in a row are free from ${from} to ${highest}`)
}

async function isFree(port: number): Promise<boolean> {
  const [server, socket] = [createServer(), createSocket('udp4')]
  try {
    const listening = once(server, 'listening')
    server.listen(port, host)
    await listening
    const bound = once(socket, 'listening')
    socket.bind(port, host)
    await bound
    return (server.address() as AddressInfo).port === port
  } catch {
    // EADDRINUSE; whatever else it is, the port is none for us.
    return false
  } finally {
    server.close()
    socket.close()
  }
}
