/**
 * Owns the engine of the load tests: a short tone as greeting, then every frame of sound straight back, and what remains is our own share.
 * Silence is not echoed: a frame too many, from a hiccup of the machine, would stand in the leg's queue for the rest of the call.
 */
import { samplesOf, samplesPerFrame } from '../../model/frame.ts'
import type { VoiceEngine } from '../../model/voice-engine.ts'
import { idleSession } from '../fake/idle-session.ts'

const format = { encoding: 'pcm16', rateHz: 16000 } as const
const greetingFrames = 10

export function createEchoEngine(): VoiceEngine {
  const greeting = tone(440, greetingFrames)
  return {
    name: 'echo',
    hears: [format],
    speaks: [format],
    open(_config, emit) {
      setImmediate(() => emit({ type: 'audio', itemId: 'echo', payload: greeting }))
      return Promise.resolve({
        ...idleSession,
        hear: (payload) => isLoud(payload) && emit({ type: 'audio', itemId: 'echo', payload }),
      })
    },
    close: () => Promise.resolve(),
  }
}

const isLoud = (payload: Uint8Array): boolean => samplesOf(payload).some((sample) => Math.abs(sample) > 500)

/** 16-bit samples as bytes. */
export function tone(hertz: number, frames: number): Uint8Array {
  const samples = new Int16Array(samplesPerFrame(format) * frames)
  for (const index of samples.keys())
    samples[index] = Math.round(8000 * Math.sin((2 * Math.PI * hertz * index) / format.rateHz))
  return new Uint8Array(samples.buffer)
}
