/**
 * Owns the SIP edge without a call behind it, in a process of its own: the embedded server, drachtio-srf on it, and every INVITE answered at once
 * with the same words. No actor, no database, no media: what is left is what the protocol costs.
 */
import process from 'node:process'
import { systemClock as clock } from '../../app/clock.ts'
import { createLog } from '../../app/log.ts'
import { createSipServer } from '../../sip/server/sip-server.ts'
import { connectStack } from '../../sip/stack.ts'

const log = createLog('error')
// A call keeps two transactions for 32 s (Timer H and J): the usual 20,000 would end a round at 312 calls a second, whatever the processor can do.
const limits = { maxServers: 400_000 }
const listen = [{ protocol: 'udp', address: '127.0.0.1', port: 0 }] as const
const server = await createSipServer({ listen, limits, clock, log })
const sdp = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 9 RTP/AVP 0',
  'a=sendrecv',
  '',
].join('\r\n')
const stack = await connectStack({
  control: server.control,
  routes: { invite: (invite, reply) => stack.accept(invite, reply, sdp, () => undefined) },
  clock,
  log,
  connectWithin: 10_000,
})

async function answer(question: unknown): Promise<void> {
  if (question === 'read') {
    const { user, system } = process.cpuUsage()
    return void process.send?.({ cpuMs: (user + system) / 1000 })
  }
  await stack.close()
  await server.close()
  process.disconnect()
}

// Whoever asked is gone.
process.once('disconnect', () => process.exit())
process.on('message', (question) => void answer(question))
process.send?.({ sipPort: server.listening[0]?.local.port ?? 0 })
