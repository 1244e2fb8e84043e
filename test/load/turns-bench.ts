/**
 * Owns `npm run bench turns [turns | tools [calls]]`: what a turn of a call costs the database, by how much its engine remembers: bytes of its event, of the snapshot, and
 * of the log of the server (WAL). One call a row, on a database of its own, whose engine tells a new memory with each turn.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createLog } from '../../app/log.ts'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import type { CallId } from '../../model/ids.ts'
import type { Json } from '../../model/json.ts'
import type { ServerMessage } from '../../model/signaling.ts'
import { openDatabase } from '../../store/open-database.ts'
import type { Sql } from '../../store/sql.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { openCallNode, type Shared } from '../scenes/call-node.ts'
import { openWebTalk } from '../scenes/web-talk.ts'
import { initialState } from '../../voice/script/dialogue/dialogue-state.ts'
import { printTable, quantile } from './table.ts'
import { measureTools, toolCells } from './tool-bench.ts'

const defaultTurns = 200
/** After a checkpoint the first change of a page writes all of it to the log of the server. */
const warmUpTurns = 30

type Kind = { readonly name: string; memoryAt(turn: number): Json }

/** Of the cascade: a call of a tool, and what was said before it. */
const rememberedCall = (at: number) => ({
  before: [
    { role: 'agent', text: `What else may I look up for you, number ${at}?` },
    { role: 'user', text: `The opening hours of shop ${at}, please.` },
  ],
  calls: [
    {
      id: `cascade-5f2c-call-${at}`,
      wireId: `call_${at}`,
      name: 'external__opening_hours',
      wantsReply: true,
      arguments: { shop: at },
      output: JSON.stringify({
        result: { shop: at, opens: '09:00', closes: '18:30', note: `Door ${at} is at the back.` },
      }),
    },
  ],
})
const fullCalls = 40

const kinds: readonly Kind[] = [
  { name: 'none', memoryAt: () => null },
  {
    name: 'of a script',
    memoryAt: (turn) => ({ ...initialState, step: turn, answers: { drink: 'tea', cups: 2, name: `Number ${turn}` } }),
  },
  {
    name: 'full, the oldest goes',
    memoryAt: (turn) => ({ besides: Array.from({ length: fullCalls }, (_, at) => rememberedCall(turn + at)) }),
  },
  {
    name: 'full, all of it new',
    memoryAt: (turn) => ({ besides: Array.from({ length: fullCalls }, (_, at) => rememberedCall(1_000 * turn + at)) }),
  },
]

export async function benchTurns([given, tools]: readonly string[]): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  closing.defer(() => rm(dataDir, { recursive: true, force: true }))
  const log = createLog('error')
  const { sql, ...database } = await openDatabase({ databaseUrl: null, dataDir, log })
  closing.defer(() => database.close())
  if (given === 'tools') return printTable([toolCells(await measureTools(sql, Number(tools ?? defaultTurns)))])
  const turns = Number(given ?? defaultTurns)
  const clock = createHandClock()
  const bus = createLocalBus({ log, clock })
  closing.defer(() => bus.close())
  const rows: Record<string, string>[] = []
  for (const kind of kinds) rows.push(await measure({ sql, bus, clock }, kind, turns))
  printTable(rows)
}

async function measure(shared: Shared, kind: Kind, turns: number): Promise<Record<string, string>> {
  const { sql } = shared
  const node = await openCallNode(shared)
  const { callId, browser } = await openWebTalk(shared, node)
  const say = async (turn: number): Promise<void> => {
    const text = `This is turn ${turn} of the talk.`
    const isSaid = (message: ServerMessage): boolean =>
      message.type === 'transcript' && message.isFinal && message.text === text
    node.engine.emit({ type: 'memory', memory: kind.memoryAt(turn) })
    node.engine.emit({ type: 'user_text', text, isFinal: true, confidence: 1, from: 0, to: 500 })
    await browser.until(isSaid)
  }
  await sql`checkpoint`
  for (let turn = 0; turn < warmUpTurns; turn++) await say(turn)
  const [walBefore, cpuBefore] = [await walAt(sql), process.cpuUsage()]
  for (let turn = warmUpTurns; turn < warmUpTurns + turns; turn++) await say(turn)
  const { user, system } = process.cpuUsage(cpuBefore)
  const wal = (await walAt(sql)) - walBefore
  const { events, snapshot } = await sizesOf(sql, callId, turns)
  await node.close()
  return {
    memory: kind.name,
    'its bytes': String(JSON.stringify(kind.memoryAt(turns)).length),
    'event, bytes of JSON p50/mean': `${quantile(events, 0.5)} / ${(events.reduce((sum, bytes) => sum + bytes, 0) / turns).toFixed(0)}`,
    'snapshot, bytes of JSON': String(snapshot),
    'WAL bytes a turn': (wal / turns).toFixed(0),
    'CPU ms a turn': ((user + system) / 1000 / turns).toFixed(2),
  }
}

async function walAt(sql: Sql): Promise<number> {
  const [row] = await sql<{ at: number }[]>`select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 as at`
  return row?.at ?? Number.NaN
}

async function sizesOf(sql: Sql, callId: CallId, turns: number) {
  const events = await sql<{ bytes: number }[]>`
    select octet_length(event::text) as bytes from call_events
    where call_id = ${callId} and event->>'type' = 'turn_committed' order by seq desc limit ${turns}`
  const [row] = await sql<{ bytes: number }[]>`
    select octet_length(snapshot::text) as bytes from calls where id = ${callId}`
  return { events: events.map(({ bytes }) => bytes), snapshot: row?.bytes ?? Number.NaN }
}
