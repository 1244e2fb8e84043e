/** Owns the commands of calls. */
import { open, rm, writeFile, type FileHandle } from 'node:fs/promises'
import { createProcessAgain } from '../../actors/after-call/process-again.ts'
import { replay } from '../../actors/call/machine/replay.ts'
import { systemClock } from '../../app/clock.ts'
import { newId } from '../../app/core.ts'
import { toIso } from '../../model/clock.ts'
import type { CallDiagnostics, DiagnosticsQuery } from '../../model/call-diagnostics.ts'
import type { CallId } from '../../model/ids.ts'
import { Problem } from '../../model/problem.ts'
import { findCallDiagnostics } from '../../store/call-diagnostics.ts'
import { findCallFacts, listCallEvents } from '../../store/call-steps.ts'
import { openCapture } from '../../store/open-capture.ts'
import { findLogRemoval } from '../../store/retention.ts'
import type { Sql } from '../../store/sql.ts'
import { reportOf } from './call-report.ts'
import { idOf, required, type AdminDatabase, type Commands } from './command.ts'

async function missingLog(sql: Sql, callId: CallId): Promise<Problem> {
  const { logRemovedAt = null } = (await findLogRemoval(sql, callId)) ?? {}
  if (logRemovedAt === null) return new Problem('NOT_FOUND', `there is no call ${callId}`)
  const when = toIso(logRemovedAt).slice(0, 10)
  return new Problem(
    'NOT_FOUND',
    `its account keeps logs for a limited time: that of call ${callId} was removed on ${when}`,
  )
}

/** Nothing that is there is written over. */
async function writeNew(file: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  const told = (error: unknown): never => {
    if (error instanceof Problem) throw error
    throw new Problem('VALIDATION_FAILED', `${file} cannot be written: ${(error as Error).message}`)
  }
  const handle: FileHandle = await open(file, 'wx', 0o600).catch(told)
  try {
    await writeFile(handle, bytes)
  } catch (error) {
    await rm(file, { force: true })
    told(error)
  } finally {
    await handle.close()
  }
}

/** Where no recordings can be read, signaling is all that is kept. */
const nowhere = { read: () => Promise.resolve(null) }

/** All parts of its lists in one. */
async function diagnosticsOf({ sql, prices = null }: AdminDatabase, callId: CallId): Promise<CallDiagnostics> {
  const call = await findCallFacts(sql, callId)
  if (!call) throw new Problem('NOT_FOUND', `there is no call ${callId}`)
  const { accountId } = call
  let whole: CallDiagnostics | null = null
  let from: DiagnosticsQuery = { fromTurn: 0, fromStep: 0, fromDelivery: 0, fromHook: 0 }
  for (;;) {
    const part = await findCallDiagnostics(sql, { accountId, callId, prices }, from)
    if (!part) throw new Problem('NOT_FOUND', `there is no call ${callId}`)
    whole = whole === null ? part : joined(whole, part)
    const { turns, steps, deliveries, nextHook } = part
    if ([turns.next, steps.next, deliveries.next, nextHook].every((next) => next === null)) return whole
    from = {
      fromTurn: turns.next ?? past,
      fromStep: steps.next ?? past,
      fromDelivery: deliveries.next ?? Number.MAX_SAFE_INTEGER,
      fromHook: nextHook ?? past,
    }
  }
}

/** Nothing is behind it. */
const past = 2_147_483_647

const joined = (whole: CallDiagnostics, part: CallDiagnostics): CallDiagnostics => ({
  ...part,
  turns: { data: [...whole.turns.data, ...part.turns.data], next: null },
  steps: { data: [...whole.steps.data, ...part.steps.data], next: null },
  deliveries: { data: [...whole.deliveries.data, ...part.deliveries.data], next: null },
  hooks: [...whole.hooks, ...part.hooks],
  nextHook: null,
})

export const callCommands: Commands = {
  'call process': {
    usage: 'call process <callId>',
    async runOn({ sql, print }, [text]) {
      const callId = idOf<'call'>(required(text, 'callId'), 'callId')
      const call = await findCallFacts(sql, callId)
      if (!call) throw new Problem('NOT_FOUND', `there is no call ${text}`)
      // A node that runs looks for jobs every second.
      await createProcessAgain({ sql, clock: systemClock, newId, wakeJobs: () => undefined })(call.accountId, callId)
      print(`${callId} is processed again`)
      return 0
    },
  },
  'call show': {
    usage: 'call show <callId> [--json]',
    options: { json: { type: 'boolean' } },
    async runOn(database, [text], { json }) {
      const { print } = database
      const found = await diagnosticsOf(database, idOf<'call'>(required(text, 'callId'), 'callId'))
      for (const line of json === true ? [JSON.stringify(found, null, 2)] : reportOf(found)) print(line)
      return 0
    },
  },
  'call capture': {
    usage: 'call capture <callId> <file>',
    async runOn({ sql, toRead = nowhere, print }, [text, named]) {
      const callId = idOf<'call'>(required(text, 'callId'), 'callId')
      const file = required(named, 'file')
      const call = await findCallFacts(sql, callId)
      if (!call) throw new Problem('NOT_FOUND', `there is no call ${callId}`)
      const capture = await openCapture({ sql, recordings: toRead }, call.accountId, callId)
      await writeNew(file, capture.file)
      print(`${capture.messages} messages of signaling and ${capture.packets()} packets of RTP are in ${file}`)
      return 0
    },
  },
  replay: {
    usage: 'replay <callId>',
    async runOn({ sql, print }, [text]) {
      const callId = idOf<'call'>(required(text, 'callId'), 'callId')
      const log = await listCallEvents(sql, callId)
      if (log.length === 0) throw await missingLog(sql, callId)
      const { facts, effects, ignored, differences } = replay(log)
      for (const { seq, fact, logged, replayed } of differences)
        print(`seq ${seq} ${fact.type}\n  logged   ${JSON.stringify(logged)}\n  replayed ${JSON.stringify(replayed)}`)
      const verdict = differences.length === 0 ? 'identical' : `${differences.length} differ`
      print(`${facts} facts (${ignored} ignored), ${effects} effects: ${verdict}`)
      return differences.length === 0 ? 0 : 1
    },
  },
}
