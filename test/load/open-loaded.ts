/**
 * Owns the service under load as benches use it: a process of its own with the flags of `npm start`, its data in a folder that goes with it, and
 * the calls that can be placed with it.
 */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createOpusLibrary } from '../../media/codecs/opus.ts'
import type { Ticker } from '../../media/ticker/ticker.ts'
import { forkProcess, type ForkedProcess } from './forked-process.ts'
import { placeLoadedCall, preparePackets } from './loaded-call.ts'
import { openLoadedPhone, preparePhoneSound } from './phone-load.ts'
import type { Reading } from './process-under-load.ts'
import { openRawSipCaller } from '../../tools/callers/raw-sip-caller.ts'

export type Ready = { readonly url: string; readonly sipPort: number; readonly called: string }
export type LoadedService = ForkedProcess<Ready> & {
  read(): Promise<Reading>
  /** The same after a garbage collection, whose CPU would spoil the rows. */
  collect(): Promise<Reading>
  /** Resolves when it has no call left, and a moment later. */
  settled(): Promise<void>
}
export type ServiceWish = {
  readonly engine: 'echo' | 'phone'
  /** `gate`: new calls are refused while running ones would suffer. */
  readonly gate?: 'open' | 'gate'
}

/** A call: what ends it. */
export type PlacedCall = { end(): Promise<void> }
/** Rejects when it is refused or does not come about. */
export type Place = (talks: boolean) => Promise<PlacedCall>
export type Line = { readonly name: 'web' | 'sip'; open(deps: LineDeps): Promise<Place> }
type LineDeps = { readonly ready: Ready; readonly ticker: Ticker; readonly closing: AsyncDisposableStack }

export const calling = '+12025550150'

export async function openLoadedService(
  { engine, gate = 'open' }: ServiceWish,
  closing: AsyncDisposableStack,
): Promise<LoadedService> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  closing.defer(() => rm(dataDir, { recursive: true, force: true }))
  const { flags, env } = flagsOfStart()
  const given = [dataDir, engine, gate]
  const child = await forkProcess<Ready>('process-under-load.ts', given, [...flags, '--expose-gc'], env)
  closing.defer(() => child.close())
  const read = (): Promise<Reading> => child.ask('read')
  return {
    ...child,
    read,
    collect: () => child.ask('collect'),
    async settled() {
      for (let look = 0; look < 400 && (await read()).running > 0; look++) await pause(50)
      await pause(1_000)
    },
  }
}

/** `exec env NAME=value node --flag … file` of package.json: what is measured runs as it is started. */
function flagsOfStart(): { readonly flags: readonly string[]; readonly env: Readonly<Record<string, string>> } {
  const described = readFileSync(path.resolve(import.meta.dirname, '../../package.json'), 'utf8')
  const { start } = (JSON.parse(described) as { scripts: { start: string } }).scripts
  const words = start.split(' ')
  return {
    flags: words.filter((word) => word.startsWith('--')),
    env: Object.fromEntries(words.flatMap((word) => (/^[A-Z_]+=[^"$]*$/.test(word) ? [word.split('=', 2)] : []))),
  }
}

export const web: Line = {
  name: 'web',
  open({ ready, ticker }) {
    const opus = createOpusLibrary()
    const { talk } = preparePackets(opus)
    return Promise.resolve(async (talks) => {
      const placed = { url: ready.url, opus, ticker, measures: false }
      const call = await placeLoadedCall({ ...placed, packets: talks ? talk : [] })
      await call.firstPacketMs
      return call
    })
  },
}

export const sip: Line = {
  name: 'sip',
  async open({ ready, ticker, closing }) {
    const caller = await openRawSipCaller({ port: ready.sipPort, called: ready.called, calling })
    closing.defer(() => caller.close())
    const sound = preparePhoneSound()
    return async (talks) => {
      const phone = await openLoadedPhone({ ticker, sound, measures: false })
      try {
        const call = await caller.call(phone.port)
        if (talks) phone.begin(call.remote)
        return {
          async end() {
            await call.hangUp()
            await phone.close()
          },
        }
      } catch (error) {
        await phone.close()
        throw error
      }
    }
  },
}

/** The clock of the ticker. */
export function after(ms: number, action: () => void): () => void {
  const timer = setTimeout(action, ms)
  return () => clearTimeout(timer)
}
