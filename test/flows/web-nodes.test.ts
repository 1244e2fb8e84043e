/**
 * Two processes of the service behind one address, on one database and one NATS server, and a real browser: whichever process has the sound of its call
 * is killed with -9, and the call goes on by the other one. When that one is stopped it goes on by a third one, and all three have recorded it.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdir, stat } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { test, type Test } from 'tap'
import type { CallId, NodeId } from '../../model/ids.ts'
import { createApiKey } from '../../store/api-keys.ts'
import type { Sql } from '../../store/sql.ts'
import type { BrowserPage } from '../peers/browser-page.ts'
import { browsers } from '../peers/browsers.ts'
import { natsServerPaths, startNatsServer } from '../peers/nats-server.ts'
import { needsTool } from '../peers/tools.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { until } from '../scenes/in-time.ts'
import { isOneRecording } from '../scenes/one-recording.ts'
import { spy } from '../scenes/page-call.ts'
import { createTenant, newId } from '../scenes/tenant.ts'

const program = path.join(import.meta.dirname, '../scenes/phone-node-process.ts')

type Node = { readonly child: ChildProcess; readonly port: number; readonly id: NodeId; kill(): Promise<void> }

async function startNode(t: Test, sql: Sql, given: readonly string[]): Promise<Node> {
  const known = (await sql<{ id: NodeId }[]>`select id from nodes`).map(({ id }) => id)
  const child = fork(program, given)
  t.teardown(() => child.kill('SIGKILL'))
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
  const [node] = await sql<{ id: NodeId }[]>`select id from nodes where id <> all(${known}::text[])`
  const kill = async () => {
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
  }
  return { child, port: Number(new URL(url).port), id: node?.id as NodeId, kill }
}

/** One address for all processes, as a balancer has it: what connects goes to the process that is named. */
async function openAddress(t: Test, first: Node) {
  let port = first.port
  const server = net.createServer((near) => {
    const far = net.connect(port, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
      one.pipe(other)
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => void server.close())
  const { port: own } = server.address() as net.AddressInfo
  return { host: `127.0.0.1:${own}`, leadTo: (node: Node) => void (port = node.port) }
}

const callWith = (session: unknown): string => `import('/parley-client.js').then(({ createCall }) => {
  window.statuses = []; window.lines = []
  window.call = createCall({
    session: ${JSON.stringify(session)},
    onStatus: (status) => statuses.push(status),
    onTranscript: (line) => lines.push(line.text),
  })
})`
const counts = `peers.at(-1).getStats().then((stats) => {
  const of = (type) => [...stats.values()].find((entry) => entry.type === type && entry.kind === 'audio')
  return { received: of('inbound-rtp')?.packetsReceived ?? 0, sent: of('outbound-rtp')?.packetsSent ?? 0 }
})`
type Counts = { readonly received: number; readonly sent: number }

/** Sound goes both ways, over the newest connection: some of it from now on. */
async function talks(page: BrowserPage): Promise<void> {
  const before = await page.evaluate<Counts>(counts)
  await until(async () => {
    const now = await page.evaluate<Counts>(counts)
    return now.received > before.received + 20 && now.sent > before.sent + 20
  })
}

/** Its recording has sound on the disk: what the first seconds may lose with a process is not asked here. */
async function isBegun(dataDir: string, callId: CallId): Promise<boolean> {
  const names = await readdir(dataDir, { recursive: true })
  const files = names.filter((name) => name.includes(callId) && name.endsWith('.wav'))
  const sizes = await Promise.all(files.map(async (name) => (await stat(path.join(dataDir, name))).size))
  return sizes.some((size) => size > 16_000)
}

for (const browser of browsers())
  for (const withActor of [false, true])
    test(
      `a page in ${browser.name} goes on by another process when the one that has ${withActor ? 'its call' : 'its sound only'} is killed`,
      { skip: browser.skip, timeout: 170_000 },
      async (t) => {
        const program = needsTool(t, 'nats-server', natsServerPaths)
        if (!program) return
        const nats = await startNatsServer(program)
        t.teardown(() => nats.close())
        const { sql, dataDir } = await openTestDatabase(t)
        const { accountId, workerId } = await createTenant(sql, { slug: 'acme', script: 'Count.' })
        const { key } = await createApiKey(sql, { accountId, name: 'test', newId, now: Date.now() })
        const dies = await startNode(t as Test, sql, [dataDir, nats.url, ''])
        const stays = await startNode(t as Test, sql, [dataDir, nats.url, ''])
        const address = await openAddress(t as Test, dies)
        const answer = await fetch(`http://127.0.0.1:${dies.port}/v1/accounts/${accountId}/web-calls`, {
          method: 'POST',
          headers: { 'x-api-key': key, 'content-type': 'application/json' },
          body: JSON.stringify({ workerId }),
        })
        const session = (await answer.json()) as { callId: CallId; signalingUrl: string }
        const page = await browser.open()
        t.teardown(() => page.close())
        await page.preload(spy)
        await page.goto(`http://${address.host}`)
        await page.evaluate(callWith({ ...session, signalingUrl: `ws://${address.host}/v1/signaling` }))
        await until(() => page.evaluate<boolean>(`statuses.at(-1) === 'connected'`))
        await talks(page)
        const owner = withActor ? dies : stays
        const [before] = await sql<
          { epoch: number; owner: NodeId }[]
        >`select epoch, owner from calls where id = ${session.callId}`
        if (before?.owner !== owner.id) {
          await sql`update calls set owner = ${owner.id} where id = ${session.callId}`
          await until(
            async () =>
              (await sql`select from calls where id = ${session.callId} and epoch > ${before!.epoch}`).count === 1,
          )
        }
        await talks(page)
        await until(() => isBegun(dataDir, session.callId))

        address.leadTo(stays)
        const killedAt = performance.now()
        await dies.kill()
        await until(() => page.evaluate<boolean>('peers.length === 2'))
        await talks(page)
        const took = Math.round(performance.now() - killedAt)
        t.comment(`sound both ways again after ${took} ms`)
        t.ok(took < 5_000, `${took} ms`)
        const said = await page.evaluate<number>('lines.length')
        await until(() => page.evaluate<boolean>(`lines.length > ${said}`))
        t.match(await sql`select progress, outcome from calls where id = ${session.callId}`, [
          { progress: 'in_progress', outcome: null },
        ])
        // One that says so when it closes a connection is enough.
        const isMoved = !withActor && browser.name === 'Chromium'
        const last = isMoved ? await goOnByThird() : stays
        await page.evaluate('call.hangUp()')
        const [ended] = await until(async () => {
          const rows = await sql<{ outcome: string }[]>`
            select outcome from calls where id = ${session.callId} and finished`
          return rows.length > 0 ? rows : null
        })
        t.equal(ended?.outcome, 'completed')
        const processes = isMoved ? 3 : 2
        const { callId } = session
        await isOneRecording(t as Test, {
          sql,
          url: `http://127.0.0.1:${last.port}`,
          accountId,
          key,
          callId,
          processes,
        })

        async function goOnByThird(): Promise<Node> {
          const third = await startNode(t as Test, sql, [dataDir, nats.url, ''])
          address.leadTo(third)
          const stopped = once(stays.child, 'exit')
          const heard = await page.evaluate<number>('lines.length')
          stays.child.send('close')
          await until(() => page.evaluate<boolean>('peers.length === 3'))
          await talks(page)
          await until(() => page.evaluate<boolean>(`lines.length > ${heard}`))
          t.same(await stopped, [0, null], 'it ended in order')
          await talks(page)
          t.match(await sql`select owner, outcome from calls where id = ${session.callId}`, [
            { owner: third.id, outcome: null },
          ])
          return third
        }
      },
    )
