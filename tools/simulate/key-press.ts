/** Owns keys that a caller presses, as events of RFC 4733 in the place of frames: five of 20 ms for each key, its end told three times, then as long nothing. */
import type { createMicrophone } from '../callers/line-sound.ts'

const names = '0123456789*#ABCD'
/** RFC 4733 §2.3: of -10 dBm0. */
const volume = 10
const endOfEvent = 0x80
const endsTold = 3

export function createKeyPress(payloadType: number | null, ticksPerKey: number) {
  const steps: (Piece | 'pause')[] = []
  let begunAt: number | null = null
  return {
    press(digits: string): void {
      if (payloadType === null) throw new Error('this line takes no keys: nobody agreed on telephone-event')
      for (const digit of digits) steps.push(...piecesOf(digit, ticksPerKey))
    },
    isIdle: (): boolean => steps.length === 0,
    /** False: no key is down, the frame is to be sent. */
    send(microphone: Pick<ReturnType<typeof createMicrophone>, 'key'>): boolean {
      const step = steps.shift()
      if (step === undefined || step === 'pause' || payloadType === null) return false
      if (step.isFirst) begunAt = null
      begunAt = microphone.key((at) => {
        const ticks = step.clockTicks
        const payload = Uint8Array.of(
          step.event,
          (step.isLast ? endOfEvent : 0) | volume,
          (ticks >> 8) & 0xff,
          ticks & 0xff,
        )
        return { payloadType, marker: step.isFirst, payload, timestamp: at }
      }, begunAt)
      return true
    },
  }
}

type Piece = {
  readonly event: number
  readonly clockTicks: number
  readonly isFirst: boolean
  readonly isLast: boolean
}

function piecesOf(digit: string, ticks: number): (Piece | 'pause')[] {
  const event = names.indexOf(digit)
  // The clock of telephone events is that of the sound; the receiver does not count on it.
  const clockTicksPerFrame = 160
  const pieces = Array.from({ length: ticks + endsTold }, (_, index) => ({
    event,
    clockTicks: Math.min(index + 1, ticks) * clockTicksPerFrame,
    isFirst: index === 0,
    isLast: index >= ticks,
  }))
  return [...pieces, ...Array.from({ length: ticks }, () => 'pause' as const)]
}
