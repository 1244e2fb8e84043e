/** Owns a hosted engine that only hears the caller: the words of a wire whose model answers nothing. docs/supervision.md. */
import { createResampler } from '../../../media/pcm/resample.ts'
import { silenceOf } from '../../../media/codecs/silence.ts'
import type { Cancel, Clock } from '../../../model/clock.ts'
import { bytesOf, frameMs, samplesOf, type LineFormats } from '../../../model/frame.ts'
import { attendedSound, type AttendConfig, type AttendEvent, type Attending } from '../../../model/voice-engine.ts'
import { silenceAtOnce } from './last-words.ts'
import type { OpenWire, WireTold } from './wire.ts'

type AttendDeps = {
  readonly config: AttendConfig
  readonly openWire: OpenWire
  /** `hears` is 16-bit sound. */
  readonly formats: LineFormats
  readonly clock: Clock
  emit(event: AttendEvent): void
}

const toldWithin = 600 / frameMs

/** Rejects with EngineRefusal. */
export async function openAttending({ config, openWire, formats, clock, emit }: AttendDeps): Promise<Attending> {
  /** Ends of speech whose text has not come. */
  let untold = 0
  let isSpeaking = false
  /** Frames in which a provider may still tell that somebody has begun to speak. */
  let untilSure = toldWithin
  const heardOut = Promise.withResolvers<void>()
  let nextFrame: Cancel | null = null

  const endHearing = (): void => {
    nextFrame?.()
    heardOut.resolve()
  }
  const take = (event: WireTold): void => {
    if (event.type === 'user_speech_started') isSpeaking = true
    if (event.type === 'user_speech_stopped') {
      isSpeaking = false
      untold++
    }
    if (event.type === 'user_text' && event.isFinal) untold--
    if (event.type === 'failed') endHearing()
    if (event.type === 'user_text' || event.type === 'used' || event.type === 'failed') emit(event)
  }
  const nothing = { instructions: '', tools: [], history: [], owesReply: false, memory: null, attends: true } as const
  const wire = await openWire({ ...config, ...nothing, formats }, take)
  const resampler = createResampler(attendedSound.rateHz, formats.hears.rateHz)
  const silence = silenceOf(formats.hears)
  /** Silence ends what is being said, and the waits for its text are counted in it. */
  const hearSilence = (): void => {
    wire.hear(silence)
    if (--untilSure <= 0 && !isSpeaking && untold === 0) return endHearing()
    nextFrame = clock.after(frameMs, hearSilence)
  }
  return {
    hear(payload) {
      if (nextFrame === null) wire.hear(resampler ? bytesOf(resampler.convert(samplesOf(payload))) : payload)
    },
    hearOut() {
      if (nextFrame !== null) return heardOut.promise
      for (let left = silenceAtOnce; left > 0; left--) wire.hear(silence)
      wire.lineClosed()
      nextFrame = clock.after(frameMs, hearSilence)
      return heardOut.promise
    },
    close() {
      nextFrame ??= () => undefined
      endHearing()
      wire.close()
    },
  }
}
