/**
 * One service in four: a gateway for browsers, an edge for telephones, REST with MCP, and actors, which share a database and a NATS server and
 * nothing else. Actors alone have voices. A browser and telephones of both directions talk through, with the embedded engine, and each part does its own work only.
 */
import { test, type Test } from 'tap'
import { systemClock } from '../../app/clock.ts'
import { readConfig } from '../../app/config.ts'
import { startParley, type Parley } from '../../app/parley.ts'
import { openEngines } from '../../app/voice-side.ts'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import { WebCallSession } from '../../model/web-call.ts'
import { placeWebCall } from '../../tools/callers/web-caller.ts'
import { askApi } from '../../tools/start/self-test/ask-api.ts'
import { seedSelfTest } from '../../tools/start/demo/seed-demo.ts'
import { runPhoneTest } from '../../tools/start/self-test/phone-test.ts'
import { runWebTest } from '../../tools/start/self-test/web-test.ts'
import { createQuietLog, type QuietLog } from '../fake/quiet-log.ts'
import { natsServerPaths, startNatsServer } from '../peers/nats-server.ts'
import { needsTool } from '../peers/tools.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { until } from '../scenes/in-time.ts'
import { soundThreads } from '../scenes/sound-threads.ts'

type Part = { readonly service: Parley; readonly log: QuietLog }
type Answer = { readonly status: number; readonly body: unknown }

const never = new AbortController().signal

async function openParts(t: Test) {
  const program = needsTool(t, 'nats-server', natsServerPaths)
  if (!program) return null
  const nats = await startNatsServer(program)
  t.teardown(() => nats.close())
  const database = await openTestDatabase(t)
  const settings = {
    ...soundThreads(),
    PORT: '0',
    SIP_PORT: '0',
    SIP_ALLOW_HOSTS: '127.0.0.1',
    DATA_DIR: database.dataDir,
    // The database of the test may have none.
    DATABASE_URL: 'postgres://user@host/parley',
    NATS_URL: nats.url,
    WEBHOOK_ALLOW_HOSTS: '127.0.0.1',
    SHUTDOWN_GRACE_SECONDS: '5',
  }
  const configOf = (more: Record<string, string>) => ({
    ...readConfig({ ...settings, ...more }),
    databaseUrl: database.databaseUrl,
  })
  const voices = new AsyncDisposableStack()
  t.teardown(() => voices.disposeAsync())
  const open = async (more: Record<string, string>, engines: Parameters<typeof startParley>[0]['engines']) => {
    const log = createQuietLog()
    const service = await startParley({ config: configOf(more), log, engines, seed: async () => null })
    t.teardown(() => service.close())
    return { service, log }
  }
  const speaking = { log: createQuietLog(), clock: systemClock }
  const { engines, embedded } = await openEngines(configOf({}), speaking, voices)
  return { nats, open, engines, embedded, sql: database.sql }
}

const ask = async ({ service }: Part, path: string, init: RequestInit = {}): Promise<Answer> => {
  const answer = await fetch(new URL(path, service.url), init)
  const text = await answer.text()
  return { status: answer.status, body: answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text }
}

const isReady = (part: Part) => until(async () => (await ask(part, '/ready')).status === 200)

test('one service in four parts on one database and one bus', { timeout: 200_000 }, async (t) => {
  const opened = await openParts(t)
  if (!opened) return
  const { open, engines, embedded } = opened
  const none = new Map()

  const gateway = await open({ ROLES: 'gateway', DRAIN_TIMEOUT_SECONDS: '1' }, none)
  t.match(await ask(gateway, '/health'), { status: 200, body: { status: 'ok' } }, 'alive by itself')
  t.match(
    await ask(gateway, '/ready'),
    { status: 503, body: { details: /gateway: no_peer/ } },
    'but nobody runs the calls of its browsers',
  )
  const signalingUrl = `${gateway.service.url.replace('http', 'ws')}/v1/signaling`
  const sip = await open({ ROLES: 'sip' }, none)
  const rest = await open({ ROLES: 'api,mcp', SIGNALING_URL: signalingUrl }, none)
  const actors = await open({ ROLES: 'actors' }, engines)
  const parts = [gateway, sip, rest, actors]
  await Promise.all(parts.map(isReady))
  t.match((await ask(rest, '/ready')).body, { status: 'ready', roles: ['api', 'mcp'] })

  t.equal((await opened.sql`select from nodes`).count, 4, 'each is known to live')
  t.equal((await ask(gateway, '/v1/accounts/current')).status, 404, 'a gateway has no REST')
  t.equal((await ask(sip, '/')).status, 404, 'nor an edge of telephones a page')
  t.equal((await ask(rest, '/v1/accounts/current')).status, 401)
  t.equal((await ask(rest, '/parley-client.js')).status, 404)
  t.equal((await ask(rest, '/v1/signaling')).status, 401, 'a path below REST like any other')

  const account = await seedSelfTest({ ...rest.service, clock: systemClock })
  const service: Parley = { ...rest.service, sip: sip.service.sip }
  const speak = (text: string) => embedded.speak(text, 'slt')
  await t.test('a browser talks through', async (t) => {
    const report = await runWebTest(service, account, { speak, signal: never })
    t.match(report, { passed: true, outcome: 'completed' }, JSON.stringify(report))
  })
  await t.test('telephones do, in both directions', async (t) => {
    const phones = { ...service, sip: sip.service.sip as NonNullable<Parley['sip']> }
    const report = await runPhoneTest(phones, account, { speak, log: createQuietLog(), signal: never })
    t.match(report, { passed: true, inbound: { outcome: 'completed' }, outbound: { outcome: 'completed' } })
  })
  t.same(
    parts.map((part) => part.service.running()),
    [0, 0, 0, 0],
  )
  const epochs = await opened.sql<{ epoch: number }[]>`select distinct epoch from calls`
  t.same([...epochs], [{ epoch: 2 }], 'each had one actor while it ran, and one for what follows')

  await t.test(
    'a browser that still talks when its gateway is gone hears so, and not only that its socket is',
    async (t) => {
      const told: string[] = []
      const wish = { workerId: account.workerId }
      const session = WebCallSession.parse(await askApi(service, account.accountId, 'web-calls', wish))
      const onMessage = ({ type }: ServerMessage): void => void told.push(type)
      const call = await placeWebCall({ ...session, createCaller: () => createWeriftCaller(), onMessage })
      t.teardown(() => call.hangUp())
      await call.caller.connected
      await gateway.service.close()
      t.equal(await call.socketClosed, 1001)
      t.equal(told.at(-1), 'bye')
    },
  )
  await until(() => actors.service.running() === 0)

  const leaving = actors.service.close()
  await until(async () => (await ask(sip, '/ready')).status === 503)
  t.match((await ask(sip, '/ready')).body, { details: /sip: no_peer/ }, 'who runs calls is gone, and the edge tells')
  await leaving
  await Promise.all([sip, rest].map((part) => part.service.close()))
  const errors = parts.flatMap(({ log }) => log.lines.filter(({ level }) => level === 'error'))
  t.same(errors, [], 'none had anything to complain about')
})
