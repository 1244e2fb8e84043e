/**
 * Owns how one caller talks: it answers when the agent has finished, again and again until the line ends, and measures how long it waited. All
 * times are of what arrives at the caller's socket.
 */
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import type { OpusLibrary } from '../../media/codecs/opus.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import { createSyntheticCaller } from '../callers/synthetic-caller.ts'
import { answers, unseenSilence } from './conversation.ts'

/** The sound of a line that is up. */
export type Line = {
  onPacket(listener: (packet: RtpPacket) => void): void
  send(packet: RtpPacket): void
}

/** A stretch in which neither was heard, by performance.now. */
export type Silence = { readonly from: number; readonly ms: number }

export type Said = { readonly text: string; readonly at: number }

export type Talk = {
  /** Resolves when the agent is heard for the first time. */
  readonly heard: Promise<void>
  readonly said: readonly Said[]
  /** Those longer than `unseenSilence` that the agent ended by speaking, and the one that lasts. */
  silences(): readonly Silence[]
  /** The longest stretch without a single packet of sound, ms. */
  readonly longestGap: () => number
  /** The line goes on over another transport: a resumed browser. */
  stop(): void
}

export type TalkDeps = {
  readonly line: Line
  readonly audio: NegotiatedAudio
  readonly opus: OpusLibrary
  readonly ticker: Ticker
  /** What the caller says, by text; 16-bit at 16 kHz. */
  readonly speech: ReadonlyMap<string, Int16Array>
  /** Which of the answers comes first. */
  readonly first: number
  readonly now: () => number
}

/** An agent that has been silent for so long has finished. */
const finishedMs = 900
/** Whoever hears nothing for so long says something all the same. */
const patienceMs = 15_000
const samplesPerMs = 16

export function talk({ line, audio, opus, ticker, speech, first, now }: TalkDeps): Talk {
  const gaps = gapsOf(line, now)
  const voice = createSyntheticCaller({ caller: gaps.line, audio, opus, ticker, now })
  const said: Said[] = []
  const silences: Silence[] = []
  const { promise: heard, resolve } = Promise.withResolvers<void>()
  let quietSince = now()
  let lastLoud: number | null = null
  let hasSpoken = false
  let speaksUntil = 0

  function say(at: number): void {
    const text = answers[(first + said.length) % answers.length] ?? answers[0]
    const words = speech.get(text) ?? new Int16Array(0)
    said.push({ text, at })
    hasSpoken = false
    speaksUntil = at + words.length / samplesPerMs
    void voice.say(words)
  }
  const leave = ticker.join(() => {
    const at = now()
    gaps.look(at)
    const { lastLoudAt } = voice.heard()
    if (lastLoudAt !== null && lastLoudAt !== lastLoud) {
      if (lastLoud === null) resolve()
      const ms = lastLoudAt - quietSince
      if (ms > unseenSilence) silences.push({ from: quietSince, ms })
      lastLoud = quietSince = lastLoudAt
      hasSpoken = true
    }
    if (at < speaksUntil) quietSince = at
    const quiet = at - quietSince
    if ((hasSpoken && quiet > finishedMs) || quiet > patienceMs) say(at)
  })
  let stoppedAt: number | null = null
  return {
    heard,
    said,
    silences: () => [...silences, { from: quietSince, ms: (stoppedAt ?? now()) - quietSince }],
    longestGap: gaps.longest,
    stop() {
      stoppedAt ??= now()
      leave()
      voice.close()
    },
  }
}

/** Beside the line: when packets came. */
function gapsOf(line: Line, now: () => number) {
  let last: number | null = null
  let longest = 0
  const look = (at: number): void => void (last !== null && (longest = Math.max(longest, at - last)))
  return {
    look,
    longest: () => longest,
    line: {
      onPacket: (listener: (packet: RtpPacket) => void) =>
        line.onPacket((packet) => {
          const at = now()
          look(at)
          last = at
          listener(packet)
        }),
      send: (packet: RtpPacket) => line.send(packet),
    },
  }
}
