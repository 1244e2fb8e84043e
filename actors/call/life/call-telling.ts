/**
 * Owns what is told of the calls of this process in numbers: how they were set up, how they ended, and in which state those are that run. An
 * actor tells each step that is written; nothing here is waited for.
 */
import type { ProgressStatus } from '../../../model/call.ts'
import type { CallId } from '../../../model/ids.ts'
import { failedReasonOf } from '../../../model/outcome.ts'
import { noTelemetry, type CallKind, type Reading, type Telemetry } from '../../../model/telemetry.ts'
import type { CallState, Step } from '../machine/step.ts'

export type CallsTelling = {
  begin(callId: CallId, state: CallState): CallTelling
  /** Of those that have begun and not ended. */
  running(): Reading<'calls.running'>[]
  /** Steps that are not in the database: on their way there, and kept on the disk. */
  unwritten(): Unwritten
  /** Who has the steps of all calls says how many are left. */
  watch(unwritten: () => Unwritten): void
}

type Unwritten = { readonly memory: number; readonly disk: number }

export type CallTelling = {
  /** A step is written. `took`: ms. */
  stepped(next: Step, now: number): void
  committed(result: 'written' | 'fenced' | 'refused' | 'unreachable', took: number): void
  /** Its actor is gone. Idempotent. */
  end(): void
}

const untold: CallTelling = { stepped: () => undefined, committed: () => undefined, end: () => undefined }
const allWritten = (): Unwritten => ({ memory: 0, disk: 0 })
export const toldNobody: CallsTelling = {
  begin: () => untold,
  running: () => [],
  unwritten: allWritten,
  watch: () => undefined,
}

type Running = Reading<'calls.running'>['labels']

export function createCallsTelling({ telemetry = noTelemetry }: { readonly telemetry?: Telemetry }): CallsTelling {
  if (!telemetry.isOn) return toldNobody
  const running = new Map<CallTelling, Running>()
  let unwritten = allWritten
  return {
    begin(callId, { context, progress }) {
      telemetry.follow?.(callId, context.trace ?? null)
      const kind = kindOf(context)
      let answeredAt = context.answeredAt
      let beganAt = answeredAt
      const telling: CallTelling = {
        stepped({ state, effects }, now) {
          if (state.waitsIn === null) beganAt ??= now
          if (answeredAt === null && state.context.answeredAt !== null) {
            answeredAt = state.context.answeredAt
            telemetry.span('call.set_up', { kind }, { callId }, beganAt ?? answeredAt).end('ok', answeredAt)
          }
          for (const effect of effects) {
            if (effect.type !== 'store_outcome') continue
            const { outcome, endedAt } = effect
            telemetry.count('call.ended', { kind, outcome: outcome.status })
            if (outcome.status === 'failed' || outcome.status === 'canceled')
              telemetry.count('call.failed', { kind, reason: failedReasonOf(outcome) ?? 'none' })
            const about = { callId, outcome: outcome.status }
            const span = telemetry.span('call.length', { kind }, about, Math.min(beganAt ?? endedAt, endedAt))
            span.end(outcome.status === 'failed' ? 'failed' : 'ok', endedAt)
          }
          running.set(telling, { kind, state: toState(state.progress) })
        },
        committed: (result, took) => telemetry.observe('call.step', took, { result }),
        end: () => void running.delete(telling),
      }
      running.set(telling, { kind, state: toState(progress) })
      return telling
    },
    running() {
      const counts = Map.groupBy(running.values(), ({ kind, state }) => `${kind} ${state}`)
      return [...counts.values()].flatMap(([labels, ...others]) =>
        labels ? [{ labels, value: 1 + others.length }] : [],
      )
    },
    unwritten: () => unwritten(),
    watch: (read) => void (unwritten = read),
  }
}

const kindOf = ({ transport, direction }: CallState['context']): CallKind =>
  transport === 'webrtc' ? 'web' : direction

function toState(progress: ProgressStatus): Running['state'] {
  switch (progress) {
    case 'scheduled':
    case 'queued':
    case 'ringing':
    case 'in_progress':
      return progress
    case 'completed':
    case 'voicemail':
    case 'no_answer':
    case 'busy':
    case 'canceled':
    case 'failed':
      return 'ending'
  }
}
