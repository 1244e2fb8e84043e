/** Owns the question whether a call that several processes had a part of is one recording to who reads it. */
import type { Test } from 'tap'
import type { CallId } from '../../model/ids.ts'
import type { Sql } from '../../store/sql.ts'
import { parseWav } from './parse-wav.ts'

type Wish = {
  readonly sql: Sql
  /** Of a process that is asked for it. */
  readonly url: string
  readonly accountId: string
  readonly key: string
  readonly callId: CallId
  /** So many processes had its line. */
  readonly processes: number
}

/** As long as the call, whose first and last process have the agent in their parts. */
export async function isOneRecording(t: Test, { sql, url, accountId, key, callId, processes }: Wish): Promise<void> {
  const parts = await sql`select from recordings where call_id = ${callId} and key like '%.%.wav'`
  t.equal(parts.count, processes - 1, 'parts')
  const [call] = await sql<{ lasted: number; recordedMs: number; warnings: unknown }[]>`
    select extract(epoch from ended_at - started_at)::float8 * 1000 as lasted, recorded_ms, warnings
    from calls where id = ${callId}`
  t.same(call?.warnings, [])
  const links = `${url}/v1/accounts/${accountId}/phone-calls/${callId}/audio/url`
  const link = (await (await fetch(links, { headers: { 'x-api-key': key } })).json()) as { url: string }
  const { samples } = parseWav(new Uint8Array(await (await fetch(link.url)).arrayBuffer()))
  const ms = samples.length / 16
  t.equal(Math.round(ms), call?.recordedMs)
  t.ok(Math.abs(ms - (call?.lasted ?? 0)) < 3_000, `${Math.round(ms)} ms of ${Math.round(call?.lasted ?? 0)}`)
  const isLoud = (from: number, to: number): boolean => samples.subarray(from * 16, to * 16).some((at) => at > 1_000)
  t.ok(isLoud(0, 3_000), 'the beginning, which the first one had')
  t.ok(isLoud(ms - 3_000, ms), 'the end, which the last one had')
}
