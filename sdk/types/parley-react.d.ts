/** Owns the types of the hooks. They stand without the types of React. */
import type { Call, CallEvents, CallOptions, CallState, Level } from './parley-client.d.ts'

export type CallHandle = {
  /** The newest one; null before the first. */
  readonly call: Call | null
  readonly state: CallState | null
  /** It has begun and is not over. */
  readonly isOn: boolean
  /** Within a click. Ends the call before, if there is one. */
  start(options: CallOptions): Call
  hangUp(): void
}

/** One call at a time, which ends with the component. */
export function useParleyCall(): CallHandle
/** Null: there is no call. */
export function useCallState(call: Call | null): CallState | null
/** Renders twenty times a second. */
export function useLevel(call: Call | null): Level
/** For as long as the component is there. */
export function useCallEvent<Name extends keyof CallEvents>(
  call: Call | null,
  name: Name,
  listener: (event: CallEvents[Name]) => void,
): void
