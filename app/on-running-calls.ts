/** Owns the wiring of what is done to calls that run, whoever asks for it and wherever they run. */
import { createCaptureCall } from '../actors/call/life/capture-call.ts'
import { createEndCall } from '../actors/call/life/end-call.ts'
import { createPauseRecording } from '../actors/call/life/pause-recording.ts'
import type { CallRouter } from '../actors/node/call-router.ts'
import type { Core } from './core.ts'

export const onRunningCalls = (core: Core & { readonly router: CallRouter }) => ({
  endCall: createEndCall(core),
  pauseRecording: createPauseRecording(core),
  captureCall: createCaptureCall(core),
})
