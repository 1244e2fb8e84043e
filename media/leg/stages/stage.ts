/**
 * Owns the shape of everything that is done to a leg's sound: a stage takes a piece of sound and passes it on to the next. What is done, and
 * in which order, are the two lists in media/leg/stages.ts.
 *
 * Stages are put together once per stream and called for every piece, so a stage makes its buffers and closures when it is built, and none
 * in its sink. It never waits. It drops a piece by not passing it on. One that throws ends its own leg as failed (leg.ts guards every call
 * from wire, bus and ticker) and disturbs no other: a bug in one call's sound costs one call.
 */

/**
 * One piece of sound on its way. Each direction of a leg has one object that carries all of its pieces: what it holds is valid during the
 * call, and whoever wants to keep it copies it. A stage that changes samples empties `payload`, which says something else then.
 */
export type Sound = {
  kind: Kind
  /** As it came, until the last stage puts what goes out in its place. Empty: nothing coded says the same as the samples. */
  payload: Uint8Array
  /** Empty where nobody needs them: G.711 that goes through untouched. */
  samples: Int16Array
  /** Of the RTP stream, of the first sample. */
  timestamp: number
  /** Time of the ticker: when it came from the caller, or is played to the caller. */
  at: number
  /** Of a pause: ticks since the last frame of the agent, this one included. */
  silentTicks: number
}

/**
 * `sound`: as it was said. `lost`: a packet that never came; `payload` is that of the packet after it, which may repeat it. `guess`: stands for
 * what was lost. `pause`: 20 ms in which nothing is said.
 */
type Kind = 'sound' | 'lost' | 'guess' | 'pause'

export type Sink = (sound: Sound) => void
export type Stage = (next: Sink) => Sink

/** Stages of one stream, the first takes what comes. */
export type Stages = {
  readonly list: readonly Stage[]
  /** Frees their codecs. Idempotent. */
  readonly close: () => void
}

export const chain = (stages: readonly Stage[], end: Sink): Sink =>
  stages.reduceRight((next, stage) => stage(next), end)

export const noBytes = new Uint8Array(0)
export const noSamples = new Int16Array(0)

export const createSound = (): Sound => ({
  kind: 'sound',
  payload: noBytes,
  samples: noSamples,
  timestamp: 0,
  at: 0,
  silentTicks: 0,
})

/** The next piece, as it comes: where it lies in time is for its source to say. */
export function renew(sound: Sound, kind: Kind, payload: Uint8Array): Sound {
  sound.kind = kind
  sound.payload = payload
  sound.samples = noSamples
  return sound
}
