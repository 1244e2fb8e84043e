/** Owns what a finished call is known by: over REST with a key, or from the database and the recordings of this machine, where its log tells times and tools to the millisecond. */
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import { readConfig, readEnvironment } from '../../app/config.ts'
import { atDatabase } from '../../app/failing-places.ts'
import { createLog } from '../../app/log.ts'
import { toId } from '../../model/ids.ts'
import { AudioDownload, toPhoneCall, type PhoneCall } from '../../model/phone-call.ts'
import type { Json } from '../../model/json.ts'
import { findCallFacts, listCallEvents } from '../../store/call-steps.ts'
import { openDatabase } from '../../store/open-database.ts'
import { findWorker } from '../../store/workers.ts'
import { listTurns } from '../../store/transcripts.ts'
import { Cannot } from '../cannot.ts'
import type { Deployment } from './deployment.ts'

export type SaidTurn = {
  readonly role: 'agent' | 'user'
  readonly text: string
  /** Ms since the answer. */
  readonly from: number
  readonly to: number
}

export type FinishedCall = {
  readonly call: PhoneCall
  readonly workerName: string | null
  readonly turns: readonly SaidTurn[]
  /** Null: REST does not tell. */
  readonly tools: readonly { readonly name: string; readonly arguments: Json }[] | null
  /** A WAV file, of two channels when both sides are apart in it; null: there is none. */
  readonly recording: Buffer | null
}

/** Five minutes of two channels at 16 kHz. */
const maxRecordingBytes = 20_000_000

export async function callOverRest(deployment: Deployment, callId: string): Promise<FinishedCall> {
  const call = await deployment.call(callId)
  const transcript = await deployment.transcript(callId)
  const turns = transcript.map(({ speaker, text, timestamps }) => ({
    role: speaker,
    text,
    from: msOfClock(timestamps.from),
    to: msOfClock(timestamps.to),
  }))
  const { name: workerName } = await deployment.worker(call.workerId)
  return { call, workerName, turns, tools: null, recording: await recordingOver(deployment, callId) }
}

const msOfClock = (text: string): number => {
  const [hours = 0, minutes = 0, seconds = 0] = text.split(':').map(Number)
  return ((hours * 60 + minutes) * 60 + seconds) * 1000
}

/** Null: the call has none, or it is too long to be taken apart. */
async function recordingOver(deployment: Deployment, callId: string): Promise<Buffer | null> {
  const link = await deployment.ask('GET', `/phone-calls/${callId}/audio/url`).catch(() => null)
  if (link === null) return null
  const answer = await fetch(new URL(AudioDownload.parse(link).url, deployment.url), {
    signal: AbortSignal.timeout(60_000),
  })
  const size = Number(answer.headers.get('content-length') ?? 0)
  if (!answer.ok || size > maxRecordingBytes) {
    await answer.body?.cancel()
    return null
  }
  return Buffer.from(await answer.arrayBuffer())
}

const Logged = z.object({ type: z.literal('tool_called'), name: z.string(), arguments: z.json() })

/** Of the database that the settings of this machine name. Throws when there is no such call. */
export async function callInLog(text: string): Promise<FinishedCall> {
  const callId = toId<'call'>(text)
  if (!callId) throw new Cannot(`${text} is no id of a call`)
  const config = readConfig(readEnvironment())
  const opening = { ...config, mustExist: true, log: createLog(config.logLevel) }
  const database = await atDatabase(config, () => openDatabase(opening), ' (--url and --key ask a deployment)')
  try {
    const { sql } = database
    const facts = await findCallFacts(sql, callId)
    if (!facts) throw new Cannot(`there is no call ${text} in this database`)
    const events = await listCallEvents(sql, callId)
    const tools = events.flatMap(({ event, ignored }) => {
      const called = ignored ? null : Logged.safeParse(event)
      return called?.success ? [{ name: called.data.name, arguments: called.data.arguments }] : []
    })
    const turns = await listTurns(sql, facts.accountId, callId)
    const file = path.join(config.recordingsDir, facts.accountId, `${callId}.wav`)
    const recording = await readFile(file).catch(() => null)
    const isShort = recording !== null && recording.length <= maxRecordingBytes
    return {
      call: toPhoneCall(facts),
      workerName: (await findWorker(sql, facts.accountId, facts.workerId))?.name ?? null,
      turns,
      tools: events.length === 0 ? null : tools,
      recording: isShort ? recording : null,
    }
  } finally {
    await database.close()
  }
}
