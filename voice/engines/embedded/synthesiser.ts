/**
 * Owns speech: text in, sound out, sentence by sentence in a thread of its own, each said only once. A thread that dies or gets stuck is
 * replaced, and its sentence tried once more. One that nobody needs for long is ended, and another one started when it is needed.
 */
import { joined } from '../../../media/pcm/joined.ts'
import type { Cancel, Clock } from '../../../model/clock.ts'
import type { Log } from '../../../model/log.ts'
import { fliteVoices, type FliteVoice } from './flite.ts'
import { sentencesOf } from '../../english/sentences.ts'
import { createRest, usualRest } from './rest.ts'
import { createSoundCache } from './sound-cache.ts'
import type { SynthesisReply, SynthesisRequest } from './synthesis-messages.ts'
import { startThread, type Thread } from './thread.ts'

export type Synthesiser = {
  /** 16-bit sound at 16 kHz in whole frames of 20 ms; it is read-only. Rejects when speech has broken down. */
  sentence(text: string, voice: FliteVoice): Promise<Int16Array>
  /** All of a text. An unknown voice speaks as the default one. */
  speak(text: string, voice?: string): Promise<Int16Array>
  /** Something will be said soon. */
  wake(): void
  /** Idempotent. */
  close(): Promise<void>
}

type Deps = {
  readonly clock: Clock
  readonly log: Log
  readonly entry?: URL
  /** Ms without work after which the thread is ended. */
  readonly restAfter?: number | undefined
}
type Job = SynthesisRequest & { readonly result: PromiseWithResolvers<Int16Array<ArrayBuffer>>; attempts: number }

export const defaultVoice: FliteVoice = 'slt'
export const voiceOf = (name: string | undefined): FliteVoice | null =>
  fliteVoices.find((voice) => voice === name) ?? null

const synthesisEntry = new URL('./synthesis-thread.ts', import.meta.url)

/** Half an hour of sound at 16 kHz. */
const cacheBytes = 64 * 1024 * 1024
const maxWaiting = 256
const maxAttempts = 2
/** A thread that could not be started is tried again after this, ms. */
const restartAfter = 1000
export async function createSynthesiser(deps: Deps): Promise<Synthesiser> {
  const cache = createSoundCache(cacheBytes)
  const under = new Map<string, Promise<Int16Array<ArrayBuffer>>>()
  const jobs = await startJobs(deps)

  const sentence = (text: string, voice: FliteVoice): Promise<Int16Array<ArrayBuffer>> => {
    const key = `${voice}|${text}`
    const known = cache.get(key)
    if (known !== undefined) return Promise.resolve(known)
    const sooner = under.get(key)
    if (sooner !== undefined) return sooner
    const spoken = jobs
      .add(voice, text)
      .then((samples) => {
        cache.put(key, samples)
        return samples
      })
      .finally(() => under.delete(key))
    under.set(key, spoken)
    return spoken
  }
  return {
    sentence,
    async speak(text, voice) {
      const pieces: Int16Array[] = []
      for (const piece of sentencesOf(text)) pieces.push(await sentence(piece, voiceOf(voice) ?? defaultVoice))
      return joined(pieces)
    },
    wake: () => jobs.wake(),
    close: () => jobs.close(),
  }
}

/** Sentences one after another through a thread that may come and go. */
async function startJobs({ clock, log, entry = synthesisEntry, restAfter = usualRest }: Deps) {
  const queue = createQueue()
  const started = Promise.withResolvers<void>()
  /** Null: it rests. */
  let thread: Thread<SynthesisRequest> | null = null
  let isReady = false
  let restart: Cancel | null = null
  let ending: Promise<unknown> = Promise.resolve()
  let closed = false

  const next = (): void => {
    const job = isReady ? queue.take() : null
    if (job) thread?.ask({ voice: job.voice, text: job.text })
  }
  const onReply = (reply: SynthesisReply): void => {
    if (reply.type === 'spoken') queue.done(reply.samples)
    isReady = true
    started.resolve()
    rest.used()
    next()
  }
  const onLost = (cause: unknown): void => {
    log.error('the synthesis thread was lost', { error: cause })
    started.reject(new Error('the synthesiser could not be started', { cause }))
    const wasReady = isReady
    isReady = false
    queue.failed(cause)
    if (wasReady) start()
    else restart = clock.after(restartAfter, start)
  }
  const start = (): void => {
    if (!closed) thread = startThread({ entry, settings: null, clock, onReply, onLost })
  }
  const wake = (): void => {
    if (thread === null) start()
    else rest.used()
  }
  const rest = createRest({
    clock,
    after: restAfter,
    isBusy: () => !isReady || queue.isBusy(),
    letGo() {
      ending = Promise.all([ending, thread?.close()])
      thread = null
      isReady = false
    },
  })
  const close = async (): Promise<void> => {
    closed = true
    restart?.()
    rest.close()
    queue.close()
    await Promise.all([ending, thread?.close()])
  }

  start()
  try {
    await started.promise
  } catch (error) {
    await close()
    throw error
  }
  return {
    wake,
    close,
    add(voice: FliteVoice, text: string): Promise<Int16Array<ArrayBuffer>> {
      const spoken = queue.add(voice, text)
      wake()
      next()
      return spoken
    },
  }
}

/** What is to be spoken, the one that is being spoken apart. */
function createQueue() {
  const waiting: Job[] = []
  let current: Job | null = null
  let closed = false
  return {
    add(voice: FliteVoice, text: string): Promise<Int16Array<ArrayBuffer>> {
      if (closed) return Promise.reject(new Error('the synthesiser is closed'))
      if (waiting.length >= maxWaiting) return Promise.reject(new Error('too much is to be spoken'))
      const job: Job = { voice, text, result: Promise.withResolvers(), attempts: 0 }
      waiting.push(job)
      return job.result.promise
    },
    isBusy: () => current !== null || waiting.length > 0,
    /** Null while one is being spoken. */
    take(): Job | null {
      if (current !== null) return null
      current = waiting.shift() ?? null
      if (current) current.attempts++
      return current
    },
    done(samples: Int16Array<ArrayBuffer>): void {
      current?.result.resolve(samples)
      current = null
    },
    failed(cause: unknown): void {
      if (current && current.attempts < maxAttempts) waiting.unshift(current)
      else current?.result.reject(new Error('the text could not be spoken', { cause }))
      current = null
    },
    close(): void {
      closed = true
      for (const job of [...waiting.splice(0), ...(current ? [current] : [])])
        job.result.reject(new Error('the synthesiser is closed'))
      current = null
    },
  }
}
