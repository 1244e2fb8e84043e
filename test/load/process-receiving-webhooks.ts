/**
 * Owns the receiver of `npm run bench webhooks`, in a process of its own: answers 200 at once, below `/hang` never. It tells when which event
 * came, ms since the epoch, and what it cost.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'

export type Received = {
  readonly count: number
  readonly arrivals: readonly (readonly [eventId: string, at: number])[]
  readonly cpuMs: number
}

let count = 0
let arrivals: [string, number][] = []

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  request.resume().on('end', () => {
    if (request.url?.startsWith('/hang')) return
    count += 1
    arrivals.push([String(request.headers['x-service-event-id']), performance.timeOrigin + performance.now()])
    response.end()
  })
})

function answer(question: unknown): void {
  if (question === 'close') {
    server.close()
    server.closeAllConnections()
    process.disconnect()
    return
  }
  const { user, system } = process.cpuUsage()
  process.send?.({ count, arrivals: question === 'take' ? arrivals : [], cpuMs: (user + system) / 1000 })
  if (question !== 'take') return
  count = 0
  arrivals = []
}

// Whoever asked is gone.
process.once('disconnect', () => process.exit())
process.on('message', answer)
server.listen(0, '127.0.0.1', () => process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
