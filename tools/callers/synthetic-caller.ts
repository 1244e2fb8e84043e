/** Owns a caller made of software: it speaks with a synthetic voice over a real line, WebRTC or SIP, and hears when the agent speaks. */
import { frameMs } from '../../model/frame.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import type { OpusLibrary } from '../../media/codecs/opus.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import { levelOf } from '../../media/vad/voice-activity.ts'
import { createEarpiece, createMicrophone, frameSamples, loud, type Line } from './line-sound.ts'

export type SyntheticCaller = {
  /** Queues speech, 16-bit at 16 kHz; resolves when its first frame is on the wire, with the time of that. */
  say(speech: Int16Array): Promise<number>
  /** Of the agent, by performance.now: null while nothing was heard. */
  heard(): { readonly firstLoudAt: number | null; readonly lastLoudAt: number | null }
  /** Resolves when the agent has been silent for `ms`. */
  silence(ms: number): Promise<void>
  /** Resolves when the agent is heard. */
  sound(): Promise<void>
  close(): void
}

export function createSyntheticCaller(deps: {
  readonly caller: Line
  readonly audio: NegotiatedAudio
  readonly opus: OpusLibrary
  readonly ticker: Ticker
  readonly now: () => number
}): SyntheticCaller {
  const { caller, ticker, now } = deps
  const incoming = createIncoming({ ...deps, line: caller })
  const outgoing = createOutgoing({ ...deps, line: caller })
  const leave = ticker.join(() => {
    outgoing.tick()
    incoming.tick()
  })
  return {
    say: (speech) => outgoing.say(speech),
    heard: () => incoming.heard(),
    silence: (ms) => incoming.until(() => now() - (incoming.heard().lastLoudAt ?? Number.NEGATIVE_INFINITY) > ms),
    sound: () => incoming.until(() => now() - (incoming.heard().lastLoudAt ?? Number.NEGATIVE_INFINITY) < 2 * frameMs),
    close() {
      leave()
      incoming.close()
      outgoing.close()
    },
  }
}

type Parts = Parameters<typeof createMicrophone>[0] & { readonly now: () => number }

function createOutgoing({ now, ...parts }: Parts) {
  const microphone = createMicrophone(parts)
  const queue: { speech: Int16Array; at: number; began: (at: number) => void }[] = []
  const silence = new Int16Array(frameSamples)
  const nextFrame = (): Int16Array => {
    const [first] = queue
    if (!first) return silence
    if (first.at === 0) first.began(now())
    const frame = new Int16Array(frameSamples)
    frame.set(first.speech.subarray(first.at, first.at + frameSamples))
    first.at += frameSamples
    if (first.at >= first.speech.length) queue.shift()
    return frame
  }
  return {
    say: (speech: Int16Array) => new Promise<number>((began) => void queue.push({ speech, at: 0, began })),
    tick: () => microphone.speak(nextFrame()),
    close: microphone.close,
  }
}

function createIncoming({ now, ...parts }: Parts) {
  const waiting = new Set<{ met: () => boolean; resolve: () => void }>()
  let firstLoudAt: number | null = null
  let lastLoudAt: number | null = null
  const earpiece = createEarpiece(parts, (samples) => {
    if (levelOf(samples) < loud) return
    lastLoudAt = now()
    firstLoudAt ??= lastLoudAt
  })
  return {
    heard: () => ({ firstLoudAt, lastLoudAt }),
    until: (met: () => boolean) => new Promise<void>((resolve) => void waiting.add({ met, resolve })),
    tick(): void {
      for (const wait of waiting) {
        if (!wait.met()) continue
        waiting.delete(wait)
        wait.resolve()
      }
    },
    close: earpiece.close,
  }
}
