/** Owns what a sentence is spoken with: one request, whose sound is given away as it comes. OpenAI API reference, "Create speech". */
import type { Clock } from '../../../model/clock.ts'
import { EndpointError, twice, type Endpoint, type EndpointAnswer } from './endpoint.ts'

/** Whole 16-bit samples, in pieces. Resolves when all have come; throws EndpointError. */
export type Speak = (text: string, signal: AbortSignal, onSound: (payload: Uint8Array) => void) => Promise<void>

const waits = { head: 10_000, idle: 5_000, whole: 60_000 }
const maxSeconds = 90

export function createSpeech(deps: {
  endpoint: Endpoint
  model: string
  voice: string | null
  rateHz: number
  clock: Clock
}): Speak {
  const { endpoint, model, voice, rateHz, clock } = deps

  return async (text, signal, onSound) => {
    const body = JSON.stringify({ model, input: text.trim(), ...(voice !== null && { voice }), response_format: 'pcm' })
    let given = 0
    const attempt = async (): Promise<void> => {
      const request = { method: 'POST', path: '/audio/speech', contentType: 'application/json', accept: '*/*' } as const
      const answer = await endpoint.ask({ ...request, body, signal, waits, maxBytes: maxSeconds * rateHz * 2 })
      // What came of a first attempt has been heard: the second one goes on there.
      const samples = createSampleCutter(given)
      for await (const chunk of soundOf(answer, rateHz)) {
        const payload = samples.push(chunk)
        given += payload.length
        if (payload.length > 0 && !signal.aborted) onSound(payload)
      }
    }
    await twice(clock, signal, attempt)
    if (given === 0) throw new EndpointError('it answered no sound', { status: 200 })
  }
}

/** Refuses what would be heard as noise. */
async function* soundOf({ contentType, body }: EndpointAnswer, rateHz: number) {
  const rate = /;\s*rate=(\d+)/.exec(contentType)?.[1]
  const isSound = /^(?:$|application\/octet-stream|audio\/(?:x-)?(?:pcm|raw|s16le))/.test(contentType)
  let isFirst = true
  for await (const chunk of body) {
    if (!isSound) throw new EndpointError(`it answered ${plain(contentType)}, not pcm`, { status: 200 })
    if (rate !== undefined && Number(rate) !== rateHz)
      throw new EndpointError(`it speaks at ${rate} Hz, not at ${rateHz}`, { status: 200 })
    if (isFirst && Buffer.from(chunk.subarray(0, 4)).toString('latin1') === 'RIFF')
      throw new EndpointError('it answered a WAV file, not pcm', { status: 200 })
    isFirst = false
    yield chunk
  }
}

const plain = (contentType: string): string =>
  contentType
    .split(';')[0]
    ?.replace(/[^\w/+.-]/g, '')
    .slice(0, 60) ?? ''

/** Two bytes are one sample, wherever the answer was cut; the first `skipped` bytes are left out. */
function createSampleCutter(skipped: number) {
  let odd: Uint8Array = new Uint8Array(0)
  let left = skipped
  return {
    push(chunk: Uint8Array): Uint8Array {
      const bytes = odd.length === 0 ? chunk : Buffer.concat([odd, chunk])
      const even = bytes.length - (bytes.length % 2)
      odd = bytes.slice(even)
      const from = Math.min(left, even)
      left -= from
      return bytes.subarray(from, even)
    },
  }
}
