/** Owns what an utterance is turned into text with: one request with a WAV file. OpenAI API reference, "Create transcription". */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../../model/clock.ts'
import { bytesOf } from '../../../model/frame.ts'
import { storableText } from '../../../model/json.ts'
import { wavHeaderOf } from '../../../media/recording/wav.ts'
import { hasLanguageList, transcriptionLanguageOf } from '../hosted/transcription-language.ts'
import { errorBodyOf } from './error-body.ts'
import { EndpointError, errorOfBody, textOf, twice, type Endpoint } from './endpoint.ts'
import { fieldsOf, parsedObject } from './fields.ts'

export type Transcript = { readonly text: string; readonly confidence: number | null }

/** 16-bit samples at 16 kHz; `language` is BCP 47. Throws EndpointError. */
export type Transcribe = (samples: Int16Array, language: string, signal: AbortSignal) => Promise<Transcript>

const rateHz = 16_000
const waits = { head: 15_000, idle: 5_000, whole: 20_000 }
const maxBytes = 1024 * 1024
const maxText = 4_000

export function createTranscription(deps: { endpoint: Endpoint; model: string; clock: Clock }): Transcribe {
  const { endpoint, model, clock } = deps
  /** Only this one tells how sure it is; newer models have not got it. */
  let format: 'verbose_json' | 'json' = 'verbose_json'
  /** There are fewer than two hundred. */
  const refusedLanguages = new Set<string>()

  const ask = async (samples: Int16Array, fields: FormFields, signal: AbortSignal): Promise<Transcript> => {
    const form = formOf(samples, { model, ...fields })
    const request = { method: 'POST', path: '/audio/transcriptions', accept: 'application/json' } as const
    const answer = await endpoint.ask({ ...request, ...form, signal, waits, maxBytes })
    return transcriptOf(await textOf(answer.body))
  }
  return async (samples, tag, signal) => {
    const language = transcriptionLanguageOf(tag)
    const field = hasLanguageList(model) ? 'languages[]' : 'language'
    const known: FormFields = language === null || refusedLanguages.has(language) ? {} : { [field]: language }
    const wide = { ...known, response_format: format }
    const plain = { response_format: 'json' } as const
    const attempts = [wide, { ...known, ...plain }, plain].slice(format === 'json' ? 1 : 0, field in known ? 3 : 2)
    for (;;) {
      const fields = attempts.shift() ?? wide
      try {
        const transcript = await twice(clock, signal, () => ask(samples, fields, signal))
        format = fields.response_format
        if (language !== null && !(field in fields)) refusedLanguages.add(language)
        return transcript
      } catch (error) {
        const isRefused = error instanceof EndpointError && [400, 415, 422].includes(error.status ?? 0)
        if (!isRefused || attempts.length === 0) throw error
      }
    }
  }
}

type FormFields = Readonly<Record<string, string>>

function transcriptOf(answer: string): Transcript {
  const fields = parsedObject(answer)
  const error = errorBodyOf(fields)
  if (error) throw errorOfBody(error)
  const text = fields?.['text']
  if (typeof text !== 'string') throw new EndpointError('it answered no transcription', { status: 200 })
  return { text: storableText(text.trim(), maxText), confidence: confidenceOf(fields?.['segments']) }
}

/** RFC 7578. */
function formOf(samples: Int16Array, fields: FormFields): { contentType: string; body: Buffer } {
  const boundary = `parley-${randomBytes(12).toString('hex')}`
  const parts = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const file = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="speech.wav"\r\nContent-Type: audio/wav\r\n\r\n`
  const sound = bytesOf(samples)
  const body = Buffer.concat([
    Buffer.from(parts.join('') + file),
    wavHeaderOf({ rateHz, channels: 1 }, sound.length),
    sound,
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ])
  return { contentType: `multipart/form-data; boundary=${boundary}`, body }
}

/** Of natural logarithms per segment, each as much as it is long. */
function confidenceOf(segments: unknown): number | null {
  if (!Array.isArray(segments)) return null
  let sum = 0
  let length = 0
  for (const segment of segments) {
    const { avg_logprob: logprob, start, end } = fieldsOf(segment) ?? {}
    if (typeof logprob !== 'number' || !Number.isFinite(logprob)) continue
    const seconds = typeof start === 'number' && typeof end === 'number' && end > start ? end - start : 1
    sum += logprob * seconds
    length += seconds
  }
  return length === 0 ? null : Math.min(1, Math.exp(sum / length))
}
