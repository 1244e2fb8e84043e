/**
 * Owns the peer of the MCP bench, in a process of its own: the stateless example server that comes with the official SDK, as it is written, but on a free
 * port and without its lines of log. Over IPC it tells its URL, and its CPU when asked.
 */
import net, { type AddressInfo } from 'node:net'
import process from 'node:process'

/** The port that the example names for itself. */
const written = 3000

const listen = Reflect.get(net.Server.prototype, 'listen') as (...given: unknown[]) => net.Server
net.Server.prototype.listen = function (this: net.Server, ...given: unknown[]): net.Server {
  if (given[0] !== written) return listen.apply(this, given)
  this.once('listening', () => {
    const { port } = this.address() as AddressInfo
    process.send?.({ url: `http://127.0.0.1:${port}` })
  })
  return listen.apply(this, [0, '127.0.0.1', ...given.slice(1)])
}
console.log = () => undefined

// Whoever asked is gone.
process.once('disconnect', () => process.exit())
process.on('message', (message) => {
  if (message === 'close') return process.disconnect()
  const { user, system } = process.cpuUsage()
  process.send?.({ cpuMicroseconds: user + system })
})
// It begins to serve when it is imported.
const example: string = '@modelcontextprotocol/sdk/examples/server/simpleStatelessStreamableHttp.js'
await import(example)
