/** Owns what is heard in place of lost packets: they are repaired from the packet after them, else guessed for up to 60 ms, else nothing. */
import { frameMs } from '../../../model/frame.ts'
import { isPayload, type Decoder } from '../../codecs/decoder.ts'
import { lawOfEncoding } from '../../codecs/g711.ts'
import { createConcealment, rememberedMs } from '../../pcm/concealment.ts'
import { noBytes, type Sound, type Stage } from './stage.ts'

/** A longer guess sounds worse than silence. */
const maxConcealedMs = 60

/** Behind `decode` of the same codec; timestamps count `clockRateHz`. */
export const conceal =
  (codec: Decoder, clockRateHz: number): Stage =>
  (next) => {
    const clockPerSample = clockRateHz / codec.rateHz
    let perPacket = (codec.rateHz * frameMs) / 1000
    let nextTimestamp = 0
    let missed = 0

    const guessed = () =>
      ((missed - 1) * perPacket * 1000) / codec.rateHz <= maxConcealedMs ? codec.conceal(perPacket) : null

    const miss = (sound: Sound) => {
      missed++
      const isRepeated = codec.recover !== null && sound.payload.length > 0
      const samples = isRepeated ? codec.recover(sound.payload, perPacket) : guessed()
      sound.timestamp = nextTimestamp >>> 0
      nextTimestamp += (samples?.length ?? perPacket) * clockPerSample
      if (samples === null) return
      sound.kind = isRepeated ? 'sound' : 'guess'
      sound.payload = noBytes
      sound.samples = samples
      next(sound)
    }

    return (sound) => {
      if (sound.kind === 'lost') return miss(sound)
      missed = 0
      perPacket = sound.samples.length
      nextTimestamp = sound.timestamp + perPacket * clockPerSample
      next(sound)
    }
  }

/** In place of `decode` and `conceal` for G.711 that nobody needs decoded: nothing is, unless something is lost. */
export const concealUntouched =
  (encoding: 'pcmu' | 'pcma'): Stage =>
  (next) => {
    const law = lawOfEncoding(encoding)
    const perMs = 8
    const recent = new Uint8Array(rememberedMs * perMs).fill(law.silence)
    let guess: ((count: number) => Int16Array | null) | null = null
    let perPacket = frameMs * perMs

    const guessing = () => {
      const concealment = createConcealment(perMs * 1000)
      const samples = new Int16Array(recent.length)
      law.decode(recent, samples)
      concealment.heard(samples)
      return concealment.guess
    }

    return (sound) => {
      const { payload } = sound
      if (sound.kind === 'sound' && isPayload(payload)) {
        guess = null
        perPacket = payload.length
        const kept = payload.subarray(Math.max(0, perPacket - recent.length))
        recent.copyWithin(0, kept.length)
        recent.set(kept, recent.length - kept.length)
        return next(sound)
      }
      guess ??= guessing()
      const samples = guess(perPacket)
      if (samples === null) return
      sound.kind = 'guess'
      sound.payload = noBytes
      sound.samples = samples
      next(sound)
    }
  }
