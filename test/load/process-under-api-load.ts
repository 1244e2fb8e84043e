/**
 * Owns one server of the API bench, in a process of its own: the real service, or a bare server that does the same work. Both use the
 * embedded database of the bench. Over IPC it tells its URL, and its CPU and memory when asked.
 */
import { createHash } from 'node:crypto'
import process from 'node:process'
import fastify from 'fastify'
import { readConfig } from '../../app/config.ts'
import { createLog } from '../../app/log.ts'
import { startParley } from '../../app/parley.ts'
import { toPhoneCall, type PhoneCallFacts } from '../../model/phone-call.ts'
import { openDatabase } from '../../store/open-database.ts'
import { createEchoEngine } from './echo-engine.ts'

type Running = { readonly url: string; close(): Promise<unknown> }

/** As high as the settings go: the limits count, and refuse nobody. */
const unreached = '100000000'

const [kind = 'node', dataDir = '.data/bench'] = process.argv.slice(2)
const log = createLog('warn')

function startService(): Promise<Running> {
  const config = readConfig({
    DATA_DIR: dataDir,
    PORT: '0',
    SIP: 'off',
    HTTP_DRIVER: kind,
    SELF_TEST: 'off',
    RATE_LIMIT_PER_ACCOUNT: unreached,
    RATE_LIMIT_PER_ADDRESS: unreached,
    MEDIA_PORTS: kind === 'uws' ? '41000-41499' : '41500-41999',
  })
  return startParley({ config, log, engines: new Map([['embedded', createEchoEngine()]]), seed: async () => null })
}

/** The same driver with the same pool; the key and the call in one query; no routes, checks, limits or headers besides. */
async function startBare(): Promise<Running> {
  const { sql, close } = await openDatabase({ databaseUrl: null, dataDir, log })
  const app = fastify()
  app.get<{ Params: { account: string; call: string } }>(
    '/v1/accounts/:account/phone-calls/:call',
    async ({ headers, params }, reply) => {
      const key = createHash('sha256').update(String(headers['x-api-key'])).digest()
      const [call] = await sql<PhoneCallFacts[]>`
        select calls.id, calls.account_id, worker_id, direction, transport, progress, outcome, failed_reason, provider_status,
          post_processing_status, from_number, to_number, person_id, customer, next_action, dimensions, scheduled_at, started_at, ended_at,
          metadata, warnings
        from calls join api_keys on api_keys.account_id = calls.account_id
        where api_keys.hash = ${key} and revoked_at is null and (expires_at is null or expires_at > ${Date.now()})
          and calls.account_id = ${params.account} and calls.id = ${params.call}`
      if (!call) return reply.code(404).send({ type: 'NOT_FOUND' })
      return toPhoneCall(call)
    },
  )
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return { url, close: () => app.close().then(close) }
}

const server = await (kind === 'bare' ? startBare() : startService())
// Whoever asked is gone.
process.once('disconnect', () => process.exit())
process.on('message', (message) => {
  if (message === 'read') {
    const { user, system } = process.cpuUsage()
    process.send?.({ cpuMicroseconds: user + system })
  }
  if (message === 'memory') {
    globalThis.gc?.()
    const { rss, heapUsed, external } = process.memoryUsage()
    process.send?.({ rss, heapUsed, external })
  }
  if (message === 'close') void server.close().then(() => process.disconnect())
})
process.send?.({ url: server.url })
