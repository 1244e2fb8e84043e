/**
 * Owns how the recording of a running call is paused and goes on, whoever asks. Whether it can be, the call itself decides when the request reaches
 * it; the row tells the answer. docs/contract/rest.md "Pausing a recording".
 */
import { callStatusOf } from '../../../model/call.ts'
import type { AccountId, CallId } from '../../../model/ids.ts'
import { toPhoneCall, type PauseRecording, type PhoneCall } from '../../../model/phone-call.ts'
import { notFound, Problem } from '../../../model/problem.ts'
import { findCallFacts } from '../../../store/call-steps.ts'
import type { CallFactsRow } from '../../../store/call-rows.ts'
import type { Sql } from '../../../store/sql.ts'
import type { CallRouter } from '../../node/call-router.ts'
import { configOf } from '../engine-choice.ts'

type Deps = { readonly sql: Sql; readonly router: CallRouter }
type Wish = 'pause' | 'resume'

const isOver = () => new Problem('CONFLICT', 'The call is over.')
const isNotRunning = () => new Problem('CONFLICT', 'The call is not answered yet: nothing of it is recorded.')
const isNotRecorded = () => new Problem('CONFLICT', 'The call is not recorded.')
const isNotBegun = () => new Problem('CONFLICT', 'The talk is about to begin or to end; nothing of it is recorded now.')
const isOutOfReach = () => new Problem('SERVICE_UNAVAILABLE', 'The call cannot be reached now; try again in a moment.')

export function createPauseRecording(deps: Deps): PauseRecording {
  return {
    pause: (accountId, callId) => ask(deps, { accountId, callId }, 'pause'),
    resume: (accountId, callId) => ask(deps, { accountId, callId }, 'resume'),
  }
}

type Asked = { readonly accountId: AccountId; readonly callId: CallId }

async function ask({ sql, router }: Deps, asked: Asked, wish: Wish): Promise<PhoneCall> {
  requireRecorded(await readCall(sql, asked))
  const taken = await router.route(asked.callId, { type: `recording_${wish}_requested` })
  const call = await readCall(sql, asked)
  requireRecorded(call)
  if (!taken) throw isOutOfReach()
  const isPaused = call.recordingState === 'paused'
  if (isPaused !== (wish === 'pause')) throw isNotBegun()
  return toPhoneCall(call)
}

function requireRecorded(call: CallFactsRow): void {
  const { progress, outcome, startedAt, recordingState } = call
  if (outcome !== null || callStatusOf(progress) === 'completed') throw isOver()
  if (startedAt === null) throw isNotRunning()
  const isOff = recordingState === null ? configOf(call).recordingEnabled === false : recordingState === 'off'
  if (isOff) throw isNotRecorded()
}

async function readCall(sql: Sql, { accountId, callId }: Asked): Promise<CallFactsRow> {
  const call = await findCallFacts(sql, callId)
  if (call?.accountId !== accountId) throw notFound()
  return call
}
