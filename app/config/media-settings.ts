/** Owns the settings of sound: of web calls, and of the threads that carry all of it. */
import { availableParallelism } from 'node:os'
import { z } from 'zod'
import { usualComplexity } from '../../media/codecs/opus.ts'
import { isLoopback, plainAddressOf } from '../../net/addresses.ts'
import { text, optional, PortRange, List, IpAddress, pairOf } from './setting.ts'

const mostThreads = 64
const threadsRule = `must be auto, or a whole number from 0 to ${mostThreads}`

/** What the thread of engines and signaling has sound for: a call takes a third (telephone) to an eighth (browser) there of what it takes in a media thread. */
const mostByItself = 8

const MediaThreads = text
  .regex(/^(?:auto|\d{1,2})$/, threadsRule)
  .refine((value) => value === 'auto' || Number(value) <= mostThreads, threadsRule)

export const mediaSettings = z.object({
  MEDIA_ADDRESS: optional(IpAddress),
  MEDIA_PUBLIC_ADDRESS: optional(IpAddress),
  MEDIA_PORTS: PortRange.default([40_000, 49_999]),
  MEDIA_THREADS: MediaThreads.default('auto'),
  OPUS_COMPLEXITY: z.coerce
    .number()
    .int('must be a whole number')
    .min(0, 'must be 0 to 10')
    .max(10, 'must be 0 to 10')
    .default(usualComplexity),
  TURN_URLS: List.default([]).refine(
    (list) => list.every((url) => /^(?:turns?|stuns?):[^\s/]+$/.test(url)),
    'must be addresses like turn:turn.example.com:3478, with commas between them',
  ),
  TURN_SECRET: optional(text.min(8, 'must be at least 8 characters')),
})

type Settings = z.infer<typeof mediaSettings>

/** `host` is that of the listener. */
export function mediaOf(settings: Settings, host: string) {
  const address = settings.MEDIA_ADDRESS ?? plainAddressOf(host) ?? '127.0.0.1'
  return {
    media: {
      address,
      // A listener on loopback says nothing of the sound: no browser but Chromium sends to loopback, and behind a proxy none can.
      offersInterfaces: settings.MEDIA_ADDRESS === null && isLoopback(address),
      publicAddress: settings.MEDIA_PUBLIC_ADDRESS,
      ports: settings.MEDIA_PORTS,
      opusComplexity: settings.OPUS_COMPLEXITY,
    },
    mediaThreads: threadsOf(settings),
    turn: turnOf(settings),
  }
}

/** auto: one for each core but that of signaling and everything else, where each finds a port for browsers, and those of the process that takes over as well. */
function threadsOf({ MEDIA_THREADS, MEDIA_PORTS: [first, last] }: Settings): number {
  if (MEDIA_THREADS !== 'auto') return Number(MEDIA_THREADS)
  const ports = last - first + 1
  return Math.min(mostByItself, availableParallelism() - 1, Math.floor(ports / 2))
}

function turnOf({ TURN_URLS, TURN_SECRET }: Settings) {
  const pair = pairOf({ TURN_URLS: TURN_URLS.length === 0 ? null : TURN_URLS }, { TURN_SECRET })
  return pair && { urls: pair[0], secret: pair[1] }
}
