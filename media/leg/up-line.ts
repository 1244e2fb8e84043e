/**
 * Owns the caller's line of sound: cuts what was decoded into frames of 20 ms and keeps the line up with real time. Sound is passed on
 * at once and never held back; only when the line falls behind (a stalled caller) is it filled with silence, or with the noise of the line, so that whoever
 * listens hears continuous sound and a pause is a pause.
 */
import { frameMs, samplesPerFrame, type AudioFormat } from '../../model/frame.ts'
import { frameBytesOf, writerOf } from '../codecs/frame-bytes.ts'
import { silenceOf } from '../codecs/silence.ts'
import { createNoise } from '../pcm/comfort-noise.ts'

/** `payload` is one frame, valid during the call only; `seq` counts from 0. */
export type UpSink = (payload: Uint8Array, seq: number) => void

export type UpLine = {
  /** What the caller said: any number of whole samples. */
  readonly sound: (payload: Uint8Array, now: number) => void
  /** What stands for a lost packet: used only as far as the line is behind. */
  readonly filler: (payload: Uint8Array, now: number) => void
  /** `noiseLevel` as in comfort-noise.ts: what the caller's line sounds like while nobody speaks. Null: silence. */
  readonly tick: (now: number, noiseLevel?: number | null) => void
  /** The caller says that nothing comes for a while: no stall, so what follows need not be waited for. */
  readonly rest: () => void
  /** Frames left out because a burst was more than a second ahead of time. */
  readonly dropped: () => number
  /** Of fillers that were used, ms. */
  readonly filledMs: () => number
}

/** A pause in packets that is taken for a stall. */
const stallMs = 60
/** After a stall its packets may come in one burst; of older sound than this nobody wants to hear. */
const maxAheadMs = 1000
/** What one tick fills at most; a longer gap (the thread stood still) is forgotten. */
const maxFillMs = 1000
/** Per tick: 500 parts in a million, more than two sound cards' clocks differ. */
const driftPerTick = frameMs * 0.0005

/** The line begins at `startedAt`; it is ahead of time as long as more was said than time has passed since. */
export function createUpLine(format: AudioFormat, startedAt: number, sink: UpSink): UpLine {
  const frameBytes = frameBytesOf(format)
  const bytesPerMs = frameBytes / frameMs
  const silence = silenceOf(format)
  const noise = createNoise()
  const write = writerOf(format)
  const rest = new Uint8Array(frameBytes)
  let restBytes = 0
  let seq = 0
  let dropped = 0
  let filledMs = 0
  let origin = startedAt
  let soundAt = startedAt

  const aheadMs = (now: number) => seq * frameMs + restBytes / bytesPerMs - (now - origin)
  const emit = (frame: Uint8Array) => sink(frame, seq++)
  const noiseOf = (level: number) => write(noise.make(samplesPerFrame(format), level))

  const append = (payload: Uint8Array) => {
    // As nearly all of it comes.
    if (restBytes === 0 && payload.length === frameBytes) return emit(payload)
    let at = 0
    for (let free = frameBytes - restBytes; payload.length - at >= free; free = frameBytes) {
      if (restBytes > 0) rest.set(payload.subarray(at, at + free), restBytes)
      emit(restBytes > 0 ? rest : payload.subarray(at, at + free))
      restBytes = 0
      at += free
    }
    if (at === payload.length) return
    rest.set(payload.subarray(at), restBytes)
    restBytes += payload.length - at
  }

  const followDrift = (now: number) => {
    const ahead = aheadMs(now)
    origin -= Math.max(-driftPerTick, Math.min(driftPerTick, ahead))
  }

  return {
    sound(payload, now) {
      soundAt = now
      if (aheadMs(now) > maxAheadMs) dropped++
      else append(payload)
    },
    filler(payload, now) {
      if (aheadMs(now) >= 0) return
      filledMs += payload.length / bytesPerMs
      append(payload)
    },
    rest: () => void (soundAt = -Infinity),
    tick(now, noiseLevel = null) {
      if (now - soundAt < stallMs) return followDrift(now)
      const behind = -aheadMs(now)
      if (behind > maxFillMs) origin += behind - maxFillMs
      while (aheadMs(now) < 0) emit(noiseLevel === null ? silence : noiseOf(noiseLevel))
    },
    dropped: () => dropped,
    filledMs: () => filledMs,
  }
}
