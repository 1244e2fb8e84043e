/** Owns the watch for answering machines on one call: the caller's frames in whatever format the engine hears, into the judge. */
import type { AudioFormat } from '../../../model/frame.ts'
import { createBeepDetector } from '../../../media/vad/beep-detector.ts'
import { readerOf } from '../../../media/codecs/frame-bytes.ts'
import { createVoicemailJudge, type VoicemailJudge } from './judge.ts'

export type VoicemailWatch = Pick<VoicemailJudge, 'read' | 'agentSpoke'> & {
  /** 20 ms in the format; valid during the call only. */
  hear(payload: Uint8Array): ReturnType<VoicemailJudge['hear']>
}

/** `answeredFor`: ms since the answer. */
export function createVoicemailWatch(format: AudioFormat, answeredFor: number): VoicemailWatch {
  const judge = createVoicemailJudge({ beeps: createBeepDetector(format.rateHz), answeredFor })
  const toSamples = readerOf(format)
  return { ...judge, hear: (payload) => judge.hear(toSamples(payload)) }
}
