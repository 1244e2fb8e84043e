/**
 * Owns what the machine does about the recording of a call that is answered: there is none, it is paused, it goes on. Asked again, nothing changes. Pure.
 * docs/contract/rest.md "Recordings".
 */
import type { RecordingState } from '../../../model/call.ts'
import type { RecordedParts } from '../../../model/leg.ts'

const record = (parts: RecordedParts) => ({ type: 'record', params: { parts } }) as const
const noted = (state: RecordingState) =>
  [
    { type: 'store_recording_state', params: { state } },
    { type: 'noteRecording', params: state },
  ] as const

/** Also of a recording that was paused before this was known: it must not go on. */
export const notRecorded = { actions: noted('off') } as const

/** `parts`: what is recorded from then on. */
export const resumed = (parts: RecordedParts) =>
  ({ guard: 'isPaused', actions: [record(parts), ...noted('on')] }) as const

export const recordingFacts = {
  recording_pause_requested: { guard: 'isRecorded', actions: [record('none'), ...noted('paused')] },
  recording_resume_requested: resumed('both'),
} as const
