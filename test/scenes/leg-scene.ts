/** Owns a leg between a scripted wire and a bus that a test listens on: as its actor and its caller see it. Nothing may be left of it at the end. */
import type { Test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { decodeFrame, encodeFrame, type Frame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import { LegEvent, LegReply, type LegCommand } from '../../model/leg.ts'
import type { NegotiatedAudio } from '../../model/rtp-transport.ts'
import { createLeg, type Leg, type LegDeps } from '../../media/leg/leg.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { createHandClock, type HandClock } from '../fake/hand-clock.ts'
import { createMemoryRecordings } from '../fake/memory-recordings.ts'
import { createQuietLog, type QuietLog } from '../fake/quiet-log.ts'
import { createScriptedTransport, type ScriptedTransport } from '../fake/scripted-transport.ts'

const callId = '0198c000-0000-7000-8000-000000000001' as CallId
export const subjects = subjectsOf(callId)

export type LegScene = {
  readonly bus: Bus
  readonly clock: HandClock
  readonly log: QuietLog
  readonly leg: Leg
  readonly wire: ScriptedTransport
  /** Frames that came up and events, in order. */
  readonly up: Frame[]
  readonly events: LegEvent[]
  readonly files: ReadonlyMap<string, Buffer>
  readonly closings: () => number
  /** Asks as the actor does. */
  readonly command: (command: LegCommand | Record<string, unknown>) => Promise<LegReply>
  /** The agent's frames, from `seq` on. */
  readonly say: (epoch: number, seq: number, frames: readonly Uint8Array[]) => Promise<void>
  /** Time passes in steps of 20 ms; `each` comes before every one of them. */
  readonly run: (ms: number, each?: () => void) => Promise<void>
}

/** What is not in `line` is that of a browser's leg. */
export function openLegScene(
  t: Pick<Test, 'teardown'>,
  audio: NegotiatedAudio,
  line: Pick<LegDeps, 'opus'> & Partial<LegDeps>,
): LegScene {
  const clock = createHandClock(10_000)
  const log = createQuietLog()
  const bus = createLocalBus({ log, clock })
  const ticker = createTicker(clock)
  const files = new Map<string, Buffer>()
  let closings = 0
  const leg = createLeg({
    callId,
    bus,
    ticker,
    recordings: createMemoryRecordings(files),
    log,
    now: () => clock.now(),
    signaling: null,
    connectWithin: 60_000,
    onClosed: () => void closings++,
    ...line,
  })
  const wire = createScriptedTransport(leg.handlers, audio)
  leg.attach(wire)
  const up: Frame[] = []
  const events: LegEvent[] = []
  const parsed = (payload: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(payload))
  bus.subscribe(subjects.up, ({ payload }) => void up.push(decodeFrame(payload)!))
  bus.subscribe(subjects.legEvent, ({ payload }) => void events.push(LegEvent.parse(parsed(payload))))
  t.teardown(async () => {
    await leg.close()
    // After its end a test asserts no more: what is thrown fails it.
    if (clock.pending() !== 0 || closings !== 1 || !wire.isClosed()) throw new Error('something of the leg is left')
    ticker.close()
    await bus.close()
  })
  return {
    bus,
    clock,
    log,
    leg,
    wire,
    up,
    events,
    files,
    closings: () => closings,
    async command(command) {
      const payload = new TextEncoder().encode(JSON.stringify(command))
      return LegReply.parse(parsed(await bus.request(subjects.legCommand, payload, { timeout: 2000 })))
    },
    async say(epoch, seq, frames) {
      frames.forEach((payload, i) =>
        bus.publish(subjects.down, encodeFrame({ epoch, seq: seq + i, timestamp: (seq + i) * 20, payload })),
      )
      await bus.flush()
    },
    async run(ms, each = () => {}) {
      for (let passed = 0; passed < ms; passed += 20) {
        each()
        clock.advance(20)
        await bus.flush()
      }
    },
  }
}

/** Root mean square. */
export const levelOf = (samples: Int16Array): number =>
  Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length)

/** Crossings of zero upwards, as hertz. */
export function pitchOf(samples: Int16Array, rateHz: number): number {
  let crossings = 0
  for (let i = 1; i < samples.length; i++) if (samples[i - 1]! < 0 && samples[i]! >= 0) crossings++
  return (crossings * rateHz) / samples.length
}
