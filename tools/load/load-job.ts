/** Owns the words of a load: what its processes are asked to do, and what they tell. All of it crosses IPC. */
import type { SipTarget } from '../callers/sip-socket.ts'

export type Way = 'web' | 'sip'

/** What is measured, each in ms but `loss` (percent of the packets) and `mos` (1 to 4.5). */
export const measures = ['setUp', 'firstAudio', 'turn', 'jitter', 'loss', 'mos', 'startLate', 'loopDelay'] as const
export type Measure = (typeof measures)[number]

/** What is counted. */
export const counters = [
  'due',
  'answered',
  'completed',
  'failed',
  'endedByService',
  'running',
  'turns',
  'packetsSent',
  'packetsReceived',
  'packetsLost',
  'packetsLate',
  'packetsWithheld',
  'beats',
  'beatsLate',
] as const
export type Counter = (typeof counters)[number]

export type WebTarget = {
  /** Of the API. */
  readonly url: string
  readonly key: string
  readonly accountId: string
  readonly workerId: string
}

export type SipSide = { readonly target: SipTarget; readonly called: string; readonly calling: string }

export type Arrivals = {
  /** Calls a second, when they have come up to it. */
  readonly rate: number
  /** Ms in which the rate rises from nothing. */
  readonly rampMs: number
  readonly durationMs: number
  /** At most so many. */
  readonly calls: number
  readonly seed: number
}

export type Weather = {
  /** 0 to 1: of the packets of callers, which are not sent. */
  readonly loss: number
  /** Ms that a packet of a caller is held back, at most, by lot. */
  readonly jitterMs: number
}

export type LoadJob = {
  /** In turns. */
  readonly ways: readonly Way[]
  readonly web: WebTarget | null
  readonly sip: SipSide | null
  readonly arrivals: Arrivals
  readonly weather: Weather
  /** What callers say, one after the other: 16 bit at 16 kHz. */
  readonly phrases: readonly Int16Array[]
  /** How long a call lasts, ms. */
  readonly holdMs: number
  /** Calls at once in one process: beyond it they fail, and nothing waits unseen. */
  readonly atOnce: number
  /** Besides loopback, where anything may be sent. */
  readonly allowedHosts: readonly string[]
  /** Session files in place of synthetic callers; their calls come in turns. */
  readonly files: readonly string[]
  /** This process takes each `of`th call, beginning with `part`. */
  readonly part: number
  readonly of: number
  /** By Date.now: when the first call may be due. */
  readonly beginsAt: number
}

/** What happened since the last one. */
export type Batch = {
  readonly values: Readonly<Partial<Record<Measure, readonly number[]>>>
  readonly counts: Readonly<Partial<Record<Counter, number>>>
  /** By kind, in words. */
  readonly errors: Readonly<Record<string, number>>
  /** Expectations of session files that were not met, in words. */
  readonly unmet: readonly string[]
}

/** Of a process of the load. */
export type FromProcess =
  | { readonly kind: 'ready' }
  | { readonly kind: 'batch'; readonly batch: Batch }
  | { readonly kind: 'done'; readonly batch: Batch }
  /** Expected: as tools/cannot.ts means it. */
  | { readonly kind: 'broken'; readonly message: string; readonly isExpected: boolean }

export type ToProcess = { readonly kind: 'job'; readonly job: LoadJob } | { readonly kind: 'stop' }
