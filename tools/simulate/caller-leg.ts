/**
 * Owns the caller's end of a line: every 20 ms it sends a frame of what is said, over what surrounds the caller, and keeps how loud both sides were.
 * All that is measured later is of this clock: sound that the caller really sent and really got.
 */
import { frameMs } from '../../model/frame.ts'
import { levelOf } from '../../media/vad/voice-activity.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import { createEarpiece, createMicrophone, frameSamples, loud, type LineSound } from '../callers/line-sound.ts'
import { createKeyPress } from './key-press.ts'
import type { Surroundings } from './surroundings.ts'

export type SpeechKind = 'say' | 'interrupt' | 'backchannel' | 'cough' | 'aside' | 'keys'

/** What the caller did, by ticks; `to` is behind the last one. */
export type Mark = {
  readonly kind: SpeechKind
  readonly text: string
  readonly from: number
  to: number
}

/** Of every tick: how loud either side was, root mean square of 16-bit samples. The agent's is what arrived. */
export type Track = {
  readonly marks: readonly Mark[]
  readonly caller: readonly number[]
  readonly agent: readonly number[]
}

export type CallerLeg = {
  /** Resolves when it has been sent, or the line is over. */
  speak(kind: SpeechKind, text: string, sound: Int16Array): Promise<void>
  press(digits: string): Promise<void>
  /** False: not within so many ms, or the line is over. Looked at with every tick. */
  until(met: () => boolean, withinMs: number): Promise<boolean>
  /** Of the agent, ms. A pause within its speech is none of its silence. */
  agent(): { readonly speakingFor: number; readonly silentFor: number; readonly begun: number | null }
  /** Ticks so far. */
  now(): number
  readonly track: Track
  /** No more is said or waited for. Idempotent. */
  close(): void
}

/** A gap up to this is one within speech: between words, or a sentence and the next. */
export const gapWithinSpeech = 400
/** So much of one call is kept. */
const longest = (2 * 60 * 60 * 1000) / frameMs
/** Frames of the agent that wait for their tick: what is more has come in a burst and is played no later. */
const playedLater = 5
/** A key is down for so many ticks, and up for as many. */
const keyTicks = 5

type Said = { readonly mark: Mark; readonly sound: Int16Array; at: number; readonly done: () => void }
type Wait = { readonly met: () => boolean; readonly until: number; readonly resolve: (met: boolean) => void }

export function createCallerLeg(
  deps: LineSound & { readonly ticker: Ticker; readonly surroundings: Surroundings },
): CallerLeg {
  const { ticker, surroundings } = deps
  const microphone = createMicrophone(deps)
  const arrived: Int16Array[] = []
  const earpiece = createEarpiece(deps, (samples) => {
    arrived.push(...framesOf(samples))
    arrived.splice(0, arrived.length - playedLater)
  })
  const keyPress = createKeyPress(deps.audio.telephoneEventPayloadType, keyTicks)
  const track = { marks: [] as Mark[], caller: [] as number[], agent: [] as number[] }
  const waiting = new Set<Wait>()
  const queue: Said[] = []
  let isClosed = false
  let firstAt: number | null = null
  let segmentFrom: number | null = null
  let lastLoud: number | null = null

  function spoken(tick: number): Int16Array {
    const [first] = queue
    if (!first) return silent
    const { mark, sound } = first
    if (first.at === 0) track.marks.push(Object.assign(mark, { from: tick }))
    const frame = new Int16Array(frameSamples)
    frame.set(sound.subarray(first.at, first.at + frameSamples))
    first.at += frameSamples
    mark.to = tick + 1
    if (first.at < sound.length) return frame
    queue.shift()
    first.done()
    return frame
  }

  function hear(tick: number): Int16Array {
    const heard = arrived.shift() ?? silent
    const level = levelOf(heard)
    track.agent[tick] = level
    if (level < loud) return heard
    if (lastLoud === null || (tick - lastLoud) * frameMs > gapWithinSpeech) segmentFrom = tick
    lastLoud = tick
    return heard
  }

  const leave = ticker.join((at) => {
    firstAt ??= at
    const tick = Math.round((at - firstAt) / frameMs)
    if (tick >= longest) return close()
    // Beats that were left out by a process that had no time: nothing was sent, and nothing heard.
    for (let missed = track.caller.length; missed < tick; missed++) track.caller[missed] = track.agent[missed] = 0
    const heard = hear(tick)
    const words = spoken(tick)
    const frame = surroundings.around(words, heard)
    track.caller[tick] = levelOf(words)
    if (!keyPress.send(microphone)) microphone.speak(frame)
    for (const wait of waiting) settle(wait, tick)
  })

  function settle(wait: Wait, tick: number): void {
    const met = wait.met()
    if (!met && tick < wait.until) return
    waiting.delete(wait)
    wait.resolve(met)
  }

  function close(): void {
    if (isClosed) return
    isClosed = true
    leave()
    earpiece.close()
    microphone.close()
    for (const wait of waiting) wait.resolve(false)
    waiting.clear()
    for (const { done } of queue.splice(0)) done()
  }

  const now = (): number => track.caller.length
  const until: CallerLeg['until'] = (met, withinMs) =>
    new Promise((resolve) => {
      if (isClosed) return resolve(false)
      waiting.add({ met, until: now() + withinMs / frameMs, resolve })
    })
  return {
    track,
    now,
    until,
    speak: (kind, text, sound) =>
      new Promise((done) => {
        if (isClosed || sound.length === 0) return done()
        queue.push({ mark: { kind, text, from: now(), to: now() }, sound, at: 0, done })
      }),
    async press(digits) {
      const mark: Mark = { kind: 'keys', text: digits, from: now(), to: now() }
      track.marks.push(mark)
      keyPress.press(digits)
      await until(() => keyPress.isIdle(), digits.length * keyTicks * 4 * frameMs)
      mark.to = now()
    },
    agent() {
      const silentFor = lastLoud === null ? Number.POSITIVE_INFINITY : (now() - 1 - lastLoud) * frameMs
      const isSpeaking = silentFor <= gapWithinSpeech && segmentFrom !== null
      return { silentFor, begun: segmentFrom, speakingFor: isSpeaking ? (now() - segmentFrom!) * frameMs : 0 }
    },
    close,
  }
}

const silent = new Int16Array(frameSamples)

/** What one packet says, as frames of their own; a packet of 40 ms gives two. */
function framesOf(samples: Int16Array): Int16Array[] {
  const frames: Int16Array[] = []
  for (let at = 0; at < samples.length; at += frameSamples) {
    const frame = new Int16Array(frameSamples)
    frame.set(samples.subarray(at, at + frameSamples))
    frames.push(frame)
  }
  return frames
}
