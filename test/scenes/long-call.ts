/** Owns what an account has that is used a lot: a call of four hours with all that was said and done in it, and ten thousand calls. */
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { CallId } from '../../model/ids.ts'
import { peaksBytesOf, peaksPerSecond } from '../../model/recording-peaks.ts'
import type { ConsoleScene } from './console.ts'
import { insertCall, newId } from './seeded-api.ts'

/** Ms. */
const length = 4 * 3_600_000
/** A word is said every 2.88 s; a tool is asked at every fourth, and receivers are told of it, ten minutes longer. */
export const longTurns = 5_000
export const longTools = 1_200
const steps = 12_000

type Scene = Pick<ConsoleScene, 'sql' | 'own' | 'database' | 'clock'>

/** Written by the server itself, in the shapes in which actors write. */
export async function insertLongCall({ sql, own, database, clock }: Scene, subscriptionId: string): Promise<CallId> {
  const startedAt = clock.now() - length - 60_000
  const callId = await insertCall(sql, own.id, own.worker.id, {
    transport: 'sip_trunk',
    progress: 'completed',
    outcome: 'completed',
    postProcessingStatus: 'completed',
    fromNumber: '+4930444444',
    createdAt: startedAt - 3_000,
    startedAt,
    endedAt: startedAt + length,
    endedBy: 'caller',
  })
  const each = length / longTurns
  await sql`
    insert into transcript_turns (call_id, account_id, turn_index, role, text, from_ms, to_ms, confidence, source, latency)
    select ${callId}, ${own.id}, n, case n % 2 when 0 then 'agent' else 'user' end, 'What was said as number ' || n || ' of a long day.',
      (n * ${each}::float8)::integer, (n * ${each}::float8)::integer + 2400, 0.9, 'embedded', case n % 2 when 0 then
      '{"endOfTurn": 300, "recognised": 350, "decided": 500, "firstAudio": 700, "firstPacket": 740}'::jsonb end
    from generate_series(0, ${longTurns - 1}::integer) n`
  await sql`
    insert into call_events (call_id, seq, account_id, epoch, at, event, effects, ignored)
    select ${callId}, n, ${own.id}, 1, ${startedAt}::timestamptz + n * ${length / steps}::float8 * interval '1 millisecond',
      case when n < ${2 * longTools}::integer and n % 2 = 0 then jsonb_build_object('type', 'tool_called', 'id', 't' || n, 'name', 'look_up')
        when n < ${2 * longTools}::integer then jsonb_build_object('type', 'tool_answered', 'id', 't' || (n - 1), 'status', 'success', 'tookMs', 40)
        else jsonb_build_object('type', 'leg_quality', 'n', n) end, '[]', false
    from generate_series(0, ${steps - 1}::integer) n`
  await sql`
    insert into deliveries (id, account_id, subscription_id, call_id, event_type, body, status, event_at, delivered_at)
    select gen_random_uuid()::text, ${own.id}, ${subscriptionId}, ${callId}, 'call.transcript', '{}',
      case n when 2999 then 'exhausted' else 'delivered' end, at, case when n < 2999 then at + interval '80 milliseconds' end
    from (select n, ${startedAt}::timestamptz + n * interval '5 seconds' as at from generate_series(0, 2999) n) told`
  const folder = path.join(database.dataDir, 'recordings', own.id)
  const values = Array.from({ length: (length / 1000) * peaksPerSecond * 2 }, (_, at) => (at * 7919) % 20_000)
  await mkdir(folder, { recursive: true })
  await writeFile(path.join(folder, `${callId}.peaks`), peaksBytesOf(2, length, values))
  await sql`update calls set recording_key = ${`${own.id}/${callId}.wav`}, recorded_ms = ${length} where id = ${callId}`
  return callId
}

/** Of the last hundred days. */
export async function insertManyCalls({ sql, own }: Scene, count: number): Promise<void> {
  await sql`
    insert into calls (id, account_id, worker_id, session_id, direction, transport, progress, outcome, snapshot, finished,
      created_at, started_at, ended_at, from_number, to_number)
    select '0180' || lpad(to_hex(n), 4, '0') || '-0000-7000-8000-' || lpad(to_hex(n), 12, '0'), ${own.id}, ${own.worker.id}, ${newId()} || n,
      'inbound', 'sip_trunk', 'completed', 'completed', '{}', true, at, at, at + interval '1 minute', '+49170' || n, '+4930999000'
    from (select n, now() - interval '100 days' * (1 - n / ${count}::float8) as at from generate_series(1, ${count}::integer) n) numbered`
}
