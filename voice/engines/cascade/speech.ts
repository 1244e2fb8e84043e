/** Owns what a sentence is spoken with: one request, whose sound is given away as it comes. OpenAI API reference, "Create speech". */
import type { Clock } from '../../../model/clock.ts'
import type { Notices } from '../notices.ts'
import { errorBodyOf } from './error-body.ts'
import { EndpointError, errorOfBody, textOf, twice, type Endpoint, type EndpointAnswer } from './endpoint.ts'
import { parsedObject } from './fields.ts'
import { createSoundReader, type SoundReader } from './sound-format.ts'

/** Whole 16-bit samples, in pieces. Resolves when all have come; throws EndpointError. */
export type Speak = (text: string, signal: AbortSignal, onSound: (payload: Uint8Array) => void) => Promise<void>

const waits = { head: 10_000, idle: 5_000, whole: 60_000 }
/** The whole answer, of a rate and a number of channels beyond ours too. */
const maxBytes = 32 * 1024 * 1024
/** Of speech whose server says at what rate it is. */
const lineHz = 24_000
export type SpeechRate = 8000 | 16000 | 24000 | 48000
/** A voice that does not stop is stopped: slow ones take a third of it. */
const maxMs = (text: string): number => 8_000 + text.length * 250

/** What the rest of the engine plays it at. */
export const speechRateOf = (statedHz: SpeechRate | null): SpeechRate => statedHz ?? lineHz

/** What form the endpoint is asked for: shared by all talks, as it is learnt once. */
export type SpeechForm = { asked: 'wav' | 'pcm'; isProven: boolean }

/**
 * Bare samples do not say how fast they are (Piper's are 22,050 a second); who knows asks for them, the others for WAV, and for bare samples where
 * there is none.
 */
export const speechFormOf = (statedHz: SpeechRate | null): SpeechForm => ({
  asked: statedHz === null ? 'wav' : 'pcm',
  isProven: false,
})

export function createSpeech(deps: {
  endpoint: Endpoint
  model: string
  voice: string | null
  rateHz: number
  form: SpeechForm
  clock: Clock
  tellOnce: Notices
}): Speak {
  const { endpoint, model, voice, rateHz, form, clock, tellOnce } = deps
  let hasSounded = false

  const bodyOf = (text: string, response_format: SpeechForm['asked']): string =>
    JSON.stringify({ model, input: text.trim(), ...(voice !== null && { voice }), response_format })
  const askFor = async (text: string, signal: AbortSignal): Promise<EndpointAnswer> => {
    const request = { method: 'POST', path: '/audio/speech', contentType: 'application/json', accept: '*/*' } as const
    const ask = (body: string): Promise<EndpointAnswer> => endpoint.ask({ ...request, body, signal, waits, maxBytes })
    try {
      const answer = await ask(bodyOf(text, form.asked))
      form.isProven = true
      return answer
    } catch (error) {
      const isRefused = error instanceof EndpointError && [400, 415, 422, 500, 501].includes(error.status ?? 0)
      if (form.asked === 'pcm' || form.isProven || !isRefused) throw error
      const answer = await ask(bodyOf(text, 'pcm'))
      Object.assign(form, { asked: 'pcm', isProven: true })
      tellOnce(
        'the speech endpoint has no WAV: its rate is taken to be 24,000 Hz where it names none (CASCADE_SPEECH_RATE)',
      )
      return answer
    }
  }
  return async (text, signal, onSound) => {
    const room = Math.round((maxMs(text) * rateHz) / 1000) * 2
    let given = 0
    const attempt = async (): Promise<void> => {
      const answer = await askFor(text, signal)
      // What came of a first attempt has been heard: the second one goes on there.
      let known = given
      for await (const sound of soundOf(answer, rateHz)) {
        const payload = sound.subarray(Math.min(known, sound.length), known + room - given)
        known = Math.max(0, known - sound.length)
        given += payload.length
        if (payload.length > 0 && !signal.aborted) onSound(payload)
        if (given >= room) return tellOnce('the speech endpoint spoke on without an end: sentences are cut off')
      }
      if (given === 0 && !hasSounded) throw new EndpointError('it answered no sound')
    }
    await twice(clock, signal, attempt)
    hasSounded ||= given > 0
    // Of a sentence that is nothing but a sign, say; the talk goes on without it.
    if (given === 0) tellOnce('the speech endpoint had no sound for a sentence')
  }
}

/** Refuses what would be heard as noise. */
async function* soundOf({ contentType, body }: EndpointAnswer, rateHz: number) {
  if (contentType.startsWith('application/json')) throw await refusalIn(body)
  let reader: SoundReader | null = null
  for await (const chunk of body) {
    reader ??= createSoundReader(contentType, rateHz)
    yield reader.push(chunk)
  }
}

async function refusalIn(body: EndpointAnswer['body']): Promise<EndpointError> {
  const error = errorBodyOf(parsedObject(await textOf(body)))
  return error ? errorOfBody(error) : new EndpointError('it answered application/json, not pcm', { status: 200 })
}
