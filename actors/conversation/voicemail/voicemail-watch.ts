/** Owns the watch for answering machines on one call: the caller's frames in whatever format the engine hears, into the judge. */
import { samplesOf, type AudioFormat } from '../../../model/frame.ts'
import { createBeepDetector } from '../../../media/vad/beep-detector.ts'
import { lawOfEncoding } from '../../../media/codecs/g711.ts'
import { createVoicemailJudge, type VoicemailJudge } from './judge.ts'

export type VoicemailWatch = Pick<VoicemailJudge, 'read' | 'agentSpoke'> & {
  /** 20 ms in the format; valid during the call only. */
  hear(payload: Uint8Array): ReturnType<VoicemailJudge['hear']>
}

/** `answeredFor`: ms since the answer. */
export function createVoicemailWatch(format: AudioFormat, answeredFor: number): VoicemailWatch {
  const judge = createVoicemailJudge({ beeps: createBeepDetector(format.rateHz), answeredFor })
  const toSamples = samplesReaderOf(format)
  return { ...judge, hear: (payload) => judge.hear(toSamples(payload)) }
}

/** Of 20 ms in the format; what it gives is valid until the next. */
export function samplesReaderOf({ encoding }: AudioFormat): (payload: Uint8Array) => Int16Array {
  if (encoding === 'pcm16') return samplesOf
  const law = lawOfEncoding(encoding)
  let samples = new Int16Array(0)
  return (payload) => {
    if (samples.length !== payload.length) samples = new Int16Array(payload.length)
    law.decode(payload, samples)
    return samples
  }
}
