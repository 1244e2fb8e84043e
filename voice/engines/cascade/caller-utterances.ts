/**
 * Owns what one caller says: frames in, and out when they began and ended to speak and what the transcription made of it. Time is counted in frames;
 * transcriptions are told in the order in which they were spoken.
 */
import { joined } from '../../../media/pcm/joined.ts'
import { frameMs } from '../../../model/frame.ts'
import type { CallerActivity } from '../../../media/vad/caller-activity.ts'
import { longestAgo } from '../../../media/vad/voice-activity.ts'
import type { SpokenStream } from './spoken-stream.ts'
import type { Transcript } from './transcription.ts'

/** Times are ms on the caller's line. */
export type Utterance = {
  /** Null: it was not understood. */
  readonly transcript: Transcript | null
  readonly from: number
  readonly to: number
  /** What the agent was saying when it began; null when the agent was silent. */
  readonly over: string | null
}

export type CallerUtterances = {
  /** 20 ms at 16 kHz. */
  hear(samples: Int16Array): void
  /** Somebody speaks, or what was said is not known yet. */
  busy(): boolean
  /** Ms heard so far. */
  at(): number
  /** Idempotent. */
  close(): void
}

type Deps = {
  readonly activity: CallerActivity
  /** Null when it cannot be known. Never rejects, and takes a bounded time. `streamed`: the same, if it was transcribed as it was spoken. */
  transcribe(samples: Int16Array, streamed: Promise<Transcript | null> | null): Promise<Transcript | null>
  /** Transcribes an utterance as it is spoken; null: this one is not. */
  stream?(onText: (text: string) => void): SpokenStream | null
  agentSpeaks(at: number): string | null
  onStarted(at: number): void
  onStopped(at: number): void
  /** What is understood so far of what is or was being said from `from` to `to`. */
  onPartial?(text: string, from: number, to: number): void
  onHeard(utterance: Utterance): void
}

type Speech = {
  readonly from: number
  /** Null: it goes on. */
  to: number | null
  readonly over: string | null
  readonly frames: Int16Array[]
  readonly live: SpokenStream | null
}

const preRollFrames = 300 / frameMs
/** The pre-roll and the frames that it takes to be sure of speech. */
const recentFrames = preRollFrames + longestAgo + 1
const maxFrames = 30_000 / frameMs
/** Utterances whose text is awaited; further ones are not transcribed. */
const maxUntold = 4
const nothing: Transcript = { text: '', confidence: null }

export function createCallerUtterances(deps: Deps): CallerUtterances {
  const { activity } = deps
  let recent: Int16Array[] = []
  let speech: Speech | null = null
  let frames = 0
  let untold = 0
  let closed = false
  let told = Promise.resolve()

  const begin = (ago: number): void => {
    const from = (frames - 1 - ago) * frameMs
    const live = deps.stream?.((text) => deps.onPartial?.(text, from, begun.to ?? frames * frameMs)) ?? null
    const begun: Speech = {
      from,
      to: null,
      over: deps.agentSpeaks(from),
      frames: recent.slice(-1 - ago - preRollFrames),
      live,
    }
    speech = begun
    for (const frame of begun.frames) live?.push(frame)
    deps.onStarted(from)
  }
  const stop = (stopped: Speech, ago: number, isNoVoice = false): void => {
    const { from, over, frames: spoken } = stopped
    const to = (frames - ago) * frameMs
    stopped.to = to
    speech = null
    untold++
    deps.onStopped(to)
    const streamed = stopped.live?.end() ?? null
    const isTooMuch = untold > maxUntold
    const transcribed =
      isNoVoice || isTooMuch ? Promise.resolve(isNoVoice ? nothing : null) : deps.transcribe(joined(spoken), streamed)
    told = told.then(async () => {
      const transcript = await transcribed
      untold--
      if (!closed) deps.onHeard({ transcript, from, to, over })
    })
  }

  return {
    hear(samples) {
      if (closed) return
      frames++
      const frame = samples.slice()
      recent = [...recent, frame].slice(-recentFrames)
      const event = activity.hear(frame, false)
      if (event?.type === 'started') return begin(event.ago)
      speech?.frames.push(frame)
      speech?.live?.push(frame)
      if (speech !== null && event?.type === 'stopped') return stop(speech, event.ago, event.isNoVoice)
      if (speech === null || speech.frames.length < maxFrames) return
      activity.reset()
      stop(speech, 0)
    },
    busy: () => speech !== null || untold > 0,
    at: () => frames * frameMs,
    close() {
      if (closed) return
      closed = true
      speech = null
      activity.close()
    },
  }
}
