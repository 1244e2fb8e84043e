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
/** A voice that does not stop is stopped: slow ones take a third of it. */
const maxMs = (text: string): number => 8_000 + text.length * 250

export function createSpeech(deps: {
  endpoint: Endpoint
  model: string
  voice: string | null
  rateHz: number
  clock: Clock
  tellOnce: Notices
}): Speak {
  const { endpoint, model, voice, rateHz, clock, tellOnce } = deps
  let hasSounded = false

  return async (text, signal, onSound) => {
    const body = JSON.stringify({ model, input: text.trim(), ...(voice !== null && { voice }), response_format: 'pcm' })
    const room = Math.round((maxMs(text) * rateHz) / 1000) * 2
    let given = 0
    const attempt = async (): Promise<void> => {
      const request = { method: 'POST', path: '/audio/speech', contentType: 'application/json', accept: '*/*' } as const
      const answer = await endpoint.ask({ ...request, body, signal, waits, maxBytes })
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
