/**
 * Owns how people of an account listen to its running calls, tell the agent something and speak in its place. docs/supervision.md.
 */
import { z } from 'zod'
import type { AudioFormat } from './frame.ts'
import type { AccountId, CallId, UserId } from './ids.ts'

/** One listening: of a person, by one browser. */
export type Supervisor = { readonly id: string; readonly userId: string }

/** Of one call at once. */
export const maxSupervisors = 4
/** Characters. */
export const maxWhisper = 1_000
/** Of a call: the newest are what its agent is told. */
export const maxWhispers = 10
/** The `source` of what a supervisor says in the agent's place: a turn of the agent's side that no engine has made. */
export const supervisorSource = 'supervisor'
/** What supervisors hear and say, on the bus. */
export const supervisorSound = { encoding: 'pcm16', rateHz: 16_000 } as const satisfies AudioFormat

export const Supervision = z.object({
  supervisors: z.array(
    z.object({
      id: z.string(),
      userId: z.string(),
      name: z.string(),
      /** They speak with the caller in the agent's place. */
      speaks: z.boolean(),
    }),
  ),
})
export type Supervision = z.infer<typeof Supervision>

/** What those who carry a supervisor's sound are told of the call. */
export const Supervised = z.object({ supervisors: z.array(z.string()).readonly(), voice: z.string().nullable() })
export type Supervised = Readonly<z.infer<typeof Supervised>>

export const Listen = z.strictObject({ sdp: z.string().min(1).max(20_000) })
export const Whisper = z.strictObject({ text: z.string().trim().min(1).max(maxWhisper) })

export type SupervisedCall = { readonly accountId: AccountId; readonly callId: CallId }
type Asked = SupervisedCall & { readonly userId: UserId }
type OfListening = Asked & { readonly id: string }

/** Each throws Problem: NOT_FOUND, INSUFFICIENT_SCOPE where the account does not allow it, CONFLICT where the call is not in such a state. */
export type Supervise = {
  read(call: SupervisedCall): Promise<Supervision>
  /** `sdp`: the offer of a browser, and the answer to it. */
  listen(asked: Asked & { readonly sdp: string }): Promise<{ readonly id: string; readonly sdp: string }>
  leave(asked: OfListening): Promise<void>
  whisper(asked: Asked & { readonly text: string }): Promise<void>
  takeOver(asked: OfListening): Promise<void>
  giveBack(asked: OfListening): Promise<void>
}
