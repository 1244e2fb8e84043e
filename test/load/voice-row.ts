/** Owns one row of the voice bench: N calls that talk for a while with an engine of the service, how long they waited, and what they cost. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { forkProcess } from './forked-process.ts'
import type { CallersTake, CallersWish } from './process-calling-with-voice.ts'
import type { VoiceServiceReading, VoiceServiceWish } from './process-with-voices.ts'

/** Shares are 0–1; times in ms. */
export type VoiceRow = Omit<CallersTake, 'calls'> & {
  readonly wanted: number
  /** Calls that came about. */
  readonly count: number
  readonly cpuMsPerCallSecond: number
  readonly postgresCpuMsPerCallSecond: number
  /** Beyond what the process had before. */
  readonly rssBytesPerCall: number
  readonly late: number
}

export type VoiceLine = {
  /** A few calls that are not measured: what a process learns at its start would be the cost of its first call. */
  warmUp(): Promise<void>
  /** `meanwhile` begins when the talk has been measured, and the calls go on until it ends. */
  measure(count: number, talkMs: number, meanwhile?: () => Promise<void>): Promise<VoiceRow>
}

/** The beginning of a call, whose set-up is not part of its talk. */
const settlingMs = 1_500
const looks = 400
const warmUpCalls = 5

/** Service and callers, each in a process of its own, which end with `closing`. */
export async function openVoiceLine(
  wish: Omit<VoiceServiceWish, 'dataDir'>,
  says: CallersWish['says'],
  closing: AsyncDisposableStack,
): Promise<VoiceLine> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  closing.defer(() => rm(dataDir, { recursive: true, force: true }))
  const given: VoiceServiceWish = { ...wish, dataDir }
  type Ready = { readonly port: number; readonly called: string }
  const service = await forkProcess<Ready>('process-with-voices.ts', [JSON.stringify(given)])
  closing.defer(() => service.close())
  const calling: CallersWish = { ...service.ready, calling: '+12025550150', says }
  const callers = await forkProcess<unknown>('process-calling-with-voice.ts', [JSON.stringify(calling)])
  closing.defer(() => callers.close())

  const read = (): Promise<VoiceServiceReading> => service.ask('read')
  const ask = (question: string): Promise<CallersTake> => callers.ask(question)
  const settled = async (): Promise<void> => {
    for (let look = 0; look < looks && (await read()).running > 0; look++) await pause(50)
    await pause(500)
  }
  const hangUp = async (): Promise<void> => {
    await ask('hang up')
    await settled()
  }
  return {
    async warmUp() {
      await ask(`connect ${warmUpCalls}`)
      await pause(2 * settlingMs)
      await hangUp()
    },
    async measure(wanted, talkMs, meanwhile) {
      const idle = await read()
      await ask(`connect ${wanted}`)
      await pause(settlingMs)
      await ask('take')
      const [before, beganAt] = [await read(), performance.now()]
      await pause(talkMs)
      const [after, seconds] = [await read(), (performance.now() - beganAt) / 1000]
      const { calls: count, ...taken } = await ask('take')
      await meanwhile?.()
      await hangUp()
      const perCallSecond = (spent: number): number => spent / (count * seconds)
      return {
        ...taken,
        wanted,
        count,
        cpuMsPerCallSecond: perCallSecond(after.cpuMs - before.cpuMs),
        postgresCpuMsPerCallSecond: perCallSecond(after.postgresCpuMs - before.postgresCpuMs),
        rssBytesPerCall: (after.rssBytes - idle.rssBytes) / count,
        late: after.late,
      }
    },
  }
}
