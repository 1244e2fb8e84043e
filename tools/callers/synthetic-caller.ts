/** Owns a caller made of software: it speaks with a synthetic voice over a real line, WebRTC or SIP, and hears when the agent speaks. */
import { bytesOf, frameMs, samplesOf, samplesPerFrame } from '../../model/frame.ts'
import type { NegotiatedAudio, RtpPacket } from '../../model/rtp-transport.ts'
import type { OpusLibrary } from '../../media/codecs/opus.ts'
import { downStages, upStages } from '../../media/leg/stages.ts'
import { chain, createSound, renew } from '../../media/leg/stages/stage.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'

const format = { encoding: 'pcm16', rateHz: 16000 } as const
const frameSamples = samplesPerFrame(format)
/** Root mean square of 16-bit samples: well above what silence decodes to, well below quiet speech. */
const loud = 300

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

/** A line that is up: WebCaller and PhoneLine are such. */
type Line = {
  onPacket(listener: (packet: RtpPacket) => void): void
  send(packet: RtpPacket): void
}

export function createSyntheticCaller(deps: {
  readonly caller: Line
  readonly audio: NegotiatedAudio
  readonly opus: OpusLibrary
  readonly ticker: Ticker
  readonly now: () => number
}): SyntheticCaller {
  const { caller, ticker, now } = deps
  const incoming = createIncoming(deps)
  const outgoing = createOutgoing(deps)
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
      caller.onPacket(() => undefined)
      incoming.close()
      outgoing.close()
    },
  }
}

/** One packet per tick, speech or silence, as a browser with an open microphone sends. */
function createOutgoing({ caller, audio, opus, now }: Parameters<typeof createSyntheticCaller>[0]) {
  // A caller's voice is coded like an agent's: the other way round is only its place in a call.
  const stages = downStages({ audio, opus, speaks: format, recording: null, isWaiting: () => false })
  const sound = createSound()
  const rtpStep = (audio.clockRateHz * frameMs) / 1000
  const queue: { speech: Int16Array; at: number; began: (at: number) => void }[] = []
  const silence = new Int16Array(frameSamples)
  let sequenceNumber = 0
  const send = chain(stages.list, ({ payload, timestamp }) =>
    caller.send({
      payloadType: audio.payloadType,
      marker: sequenceNumber === 0,
      sequenceNumber: sequenceNumber & 0xffff,
      timestamp,
      payload,
    }),
  )
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
    tick(): void {
      sound.timestamp = (sequenceNumber * rtpStep) >>> 0
      send(renew(sound, 'sound', bytesOf(nextFrame())))
      sequenceNumber++
    },
    close: stages.close,
  }
}

function createIncoming({ caller, audio, opus, now }: Parameters<typeof createSyntheticCaller>[0]) {
  const stages = upStages({ audio, opus, hears: format, recording: null })
  const sound = createSound()
  const waiting = new Set<{ met: () => boolean; resolve: () => void }>()
  let firstLoudAt: number | null = null
  let lastLoudAt: number | null = null
  const hear = chain(stages.list, ({ kind, payload }) => {
    if (kind !== 'sound' || loudnessOf(samplesOf(payload)) < loud) return
    lastLoudAt = now()
    firstLoudAt ??= lastLoudAt
  })
  caller.onPacket(({ payloadType, payload }) => {
    if (payloadType === audio.payloadType) hear(renew(sound, 'sound', payload))
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
    close: stages.close,
  }
}

function loudnessOf(samples: Int16Array): number {
  let sum = 0
  for (const sample of samples) sum += sample * sample
  return Math.sqrt(sum / Math.max(1, samples.length))
}
