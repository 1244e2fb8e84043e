/** Owns how the fake of Gemini Live notices speech: by energy, in the sound's own time, with the client's settings. */
import type { AutomaticActivityDetection } from '@google/genai'

export type Hearing = {
  /** 16-bit samples at 16 kHz, cut anywhere. */
  hear(bytes: Buffer): void
  /** Ms of sound so far. */
  at(): number
}

const blockBytes = 640
const blockMs = 20

export function createHearing(
  settings: AutomaticActivityDetection,
  told: { started(at: number): void; stopped(at: number): void },
): Hearing {
  const threshold = settings.startOfSpeechSensitivity === 'START_SENSITIVITY_LOW' ? 900 : 300
  const prefix = Math.max(blockMs, settings.prefixPaddingMs ?? 20)
  const patience = settings.endOfSpeechSensitivity === 'END_SENSITIVITY_LOW' ? 1.5 : 1
  const silence = (settings.silenceDurationMs ?? 500) * patience
  let rest: Buffer = Buffer.alloc(0)
  let blocks = 0
  let voiced = 0
  let silent = 0
  let speaking = false

  const take = (block: Buffer): void => {
    blocks++
    const loud = levelOf(block) > threshold
    silent = loud ? 0 : silent + blockMs
    if (loud) voiced += blockMs
    else if (silent >= 3 * blockMs && !speaking) voiced = 0
    if (!speaking && voiced >= prefix) {
      speaking = true
      told.started(blocks * blockMs - prefix)
    }
    if (!speaking || silent < silence) return
    speaking = false
    voiced = 0
    told.stopped(blocks * blockMs - silent)
  }
  return {
    hear(bytes) {
      const all = Buffer.concat([rest, bytes])
      const whole = all.length - (all.length % blockBytes)
      for (let at = 0; at < whole; at += blockBytes) take(all.subarray(at, at + blockBytes))
      rest = all.subarray(whole)
    },
    at: () => blocks * blockMs,
  }
}

function levelOf(block: Buffer): number {
  let sum = 0
  for (let at = 0; at < block.length; at += 2) sum += block.readInt16LE(at) ** 2
  return Math.sqrt((sum / block.length) * 2)
}
