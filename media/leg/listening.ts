/**
 * Owns what supervisors hear of a leg: of each tick 20 ms of both sides, as they were heard by each other. The caller's sound comes when it comes, and
 * waits a little for its tick; what is too old is left out, so that who listens is never far behind. docs/supervision.md.
 */
import { bytesOf, frameMs, samplesPerFrame, type Frame } from '../../model/frame.ts'
import { supervisorSound } from '../../model/supervision.ts'

export type Listening = {
  isOn(): boolean
  set(isOn: boolean): void
  /** Of the rate of `supervisorSound`; copied. */
  caller(samples: Int16Array): void
  /** What is played in this tick. */
  agent(samples: Int16Array): void
  tick(): void
}

const perFrame = samplesPerFrame(supervisorSound)
/** Of the caller's: what waits at first, and when some of it is left out. */
const [cushion, mostWaiting] = [2 * perFrame, 10 * perFrame]
/** A burst behind a stall. */
const room = 50 * perFrame
const nothing = new Int16Array(0)

export function createListening(send: (frame: Frame) => void): Listening {
  /** Of the caller's; few calls are ever listened to. */
  let waiting = nothing
  /** The caller's half, then the agent's. */
  let piece = nothing
  let count = 0
  let isFlowing = false
  let isOn = false
  let seq = 0

  const drop = (samples: number): void => {
    waiting.copyWithin(0, samples, count)
    count -= samples
  }
  const takeCaller = (): void => {
    if (count > mostWaiting) drop(count - cushion)
    isFlowing = isFlowing ? count > 0 : count >= cushion
    if (!isFlowing) return
    const taken = Math.min(count, perFrame)
    piece.set(waiting.subarray(0, taken))
    drop(taken)
  }

  return {
    isOn: () => isOn,
    set(on) {
      if (on === isOn) return
      isOn = on
      count = 0
      waiting = on ? new Int16Array(room) : nothing
      piece = on ? new Int16Array(2 * perFrame) : nothing
    },
    caller(samples) {
      if (!isOn) return
      const newest = samples.subarray(Math.max(0, samples.length - room))
      if (count + newest.length > room) drop(Math.min(count, count + newest.length - room))
      waiting.set(newest, count)
      count += newest.length
    },
    agent(samples) {
      if (isOn) piece.set(samples.subarray(0, perFrame), perFrame)
    },
    tick() {
      if (!isOn) return
      takeCaller()
      send({ epoch: 0, seq, timestamp: seq * frameMs, payload: bytesOf(piece) })
      seq++
      piece.fill(0)
    },
  }
}
