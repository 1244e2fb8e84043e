/**
 * Owns `npm run bench turns tools [calls]`: what the service adds to a tool that an engine calls behind the caller's turn, without sound: from the engine's
 * call to the answer in its hands, less what the receiver took. Beside it, in turns, what cannot be left out: two commits of a row, one after the other,
 * and a request to the receiver. On a machine that others share their ratio counts.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createLog } from '../../app/log.ts'
import type { Sql } from '../../store/sql.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { openCallNode, type Shared } from '../scenes/call-node.ts'
import { newId } from '../scenes/tenant.ts'
import { openWebTalk } from '../scenes/web-talk.ts'
import { quantile } from './table.ts'

const warmUp = 20

/** Milliseconds. */
export type ToolFigures = { readonly added: readonly number[]; readonly bare: readonly number[] }

export async function measureTools(sql: Sql, count: number): Promise<ToolFigures> {
  await using closing = new AsyncDisposableStack()
  const log = createLog('error')
  const clock = createHandClock()
  const bus = createLocalBus({ log, clock })
  closing.defer(() => bus.close())
  const receiver = await openReceiver()
  closing.defer(() => receiver.close())
  const call = await openTalk({ sql, bus, clock }, receiver.url, closing)
  await sql`create table if not exists bench_floor (at integer)`
  const [added, bare]: [number[], number[]] = [[], []]
  for (let at = 0; at < warmUp + count; at++) {
    const [tool, floor] = [await call.tool(at), await bareOf(sql, receiver.url)]
    if (at < warmUp) continue
    added.push(tool)
    bare.push(floor)
  }
  return { added, bare }
}

export function toolCells({ added, bare }: ToolFigures): Record<string, string> {
  const halves = (values: readonly number[]): string =>
    `${quantile(values, 0.5).toFixed(1)} / ${quantile(values, 0.95).toFixed(1)}`
  return {
    tools: String(added.length),
    'added p50/p95 ms': halves(added),
    'aim p95': '20',
    'two commits and a request p50/p95 ms': halves(bare),
    'ratio of p50': (quantile(added, 0.5) / quantile(bare, 0.5)).toFixed(2),
  }
}

/** Answers at once. */
async function openReceiver() {
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end('{"result":1}'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/tool`,
    close: async (): Promise<void> => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function openTalk(shared: Shared, deliveryUrl: string, closing: AsyncDisposableStack) {
  const schema = { type: 'object' as const, properties: { number: { type: 'integer' } }, required: ['number'] }
  const tool = { name: 'look_up', description: '', deliveryUrl, signingSecret: newId(), inputSchema: schema }
  const node = await openCallNode(shared, async () => ({ kind: 'answered', answer: { tools: [tool] } }))
  closing.defer(() => node.close())
  await openWebTalk(shared, node)
  const { engine } = node
  return {
    async tool(at: number): Promise<number> {
      const [id, from] = [`call-${at}`, performance.now()]
      engine.emit({ type: 'user_text', text: `Number ${at}.`, isFinal: true, confidence: 1, from: 0, to: 500 })
      engine.emit({ type: 'tool_call', id, name: 'look_up', arguments: { number: at } })
      const answered = `result:${id}:look_up:success`
      while (engine.told.at(-1) !== answered) await new Promise(setImmediate)
      return performance.now() - from
    },
  }
}

async function bareOf(sql: Sql, url: string): Promise<number> {
  const from = performance.now()
  for (let commits = 0; commits < 2; commits++) await sql`insert into bench_floor values (1)`
  await (await fetch(url, { method: 'POST', body: '{}' })).text()
  return performance.now() - from
}
