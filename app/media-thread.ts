/** Owns a media thread from within: its sound, on a bus of its own, served to the process that started it (media-threads.ts). */
import { setPriority } from 'node:os'
import process from 'node:process'
import { parentPort, workerData } from 'node:worker_threads'
import { createThreadBus } from '../actors/bus/thread-bus.ts'
import type { ChannelEnd } from '../actors/bus/entry-channel.ts'
import { createOpusLibrary } from '../media/codecs/opus.ts'
import { loadOpusAddon } from '../media/codecs/opus-addon.ts'
import { createLink, type Far } from '../media/plane/link.ts'
import type { OwnerMethods } from '../media/plane/far-lines.ts'
import { servePlane } from '../media/plane/serve-plane.ts'
import { createSlotSleep } from '../media/ticker/slot-sleep.ts'
import type { NodeId } from '../model/ids.ts'
import type { Log, LogFields } from '../model/log.ts'
import type { RecordingStore } from '../model/recording-store.ts'
import { noTelemetry, type Telemetry } from '../model/telemetry.ts'
import { createRecordingFolder } from '../store/recording-folder.ts'
import { now, systemClock as clock } from './clock.ts'
import { openLocalMedia } from './local-media.ts'
import { createSleptGauge, keepGauges } from './media-gauges.ts'
import type { MediaSettings } from './media-settings.ts'

export type ThreadSettings = {
  /** Of the process. */
  readonly nodeId: NodeId
  readonly settings: MediaSettings
  readonly bus: ChannelEnd
  readonly gauges: SharedArrayBuffer
  /** The copy of the Opus addon for this thread; null: WebAssembly encodes. */
  readonly opusAddon: string | null
  readonly recordings: { readonly folder: string; readonly reserve: number }
  readonly isTelemetryOn: boolean
}

/** What the process serves to the thread. */
export type ThreadOwner = OwnerMethods & {
  ready(): void
  log(level: 'debug' | 'info' | 'warn' | 'error', message: string, fields: LogFields): void
  count(...told: Parameters<Telemetry['count']>): void
  observe(...told: Parameters<Telemetry['observe']>): void
  recordingBegan(key: string): void
  recordingEnded(key: string): void
}

/** A slot of sound is late after a few ms; whatever else works on this machine has longer. */
const niceness = -10

async function main(): Promise<void> {
  goBeforeOthers()
  const port = parentPort
  if (port === null) throw new Error('runs in a worker thread only')
  const given = workerData as ThreadSettings
  const link = createLink(port, (error) => log.error('a media thread failed at what it was told', { error }))
  const owner = link.to<ThreadOwner>(0)
  const log = createFarLog(owner)
  const telemetry = given.isTelemetryOn ? farTelemetry(owner) : noTelemetry
  const closing = new AsyncDisposableStack()
  closing.defer(() => port.close())
  const sleep = createSlotSleep({
    now,
    later: (ms, action) => clock.after(ms, action),
    slept: createSleptGauge(given.gauges),
  })
  const looks = { nextLook: sleep.beforeSlot, atEndOfTurn: sleep.afterTurn }
  const bus = createThreadBus({ end: given.bus, log, clock, telemetry, ...looks })
  closing.defer(() => bus.close())
  const { opusAddon } = given
  const { opusComplexity } = given.settings.media
  const opus = createOpusLibrary(() => (opusAddon === null ? null : loadOpusAddon(opusAddon)), opusComplexity)
  const recordings = farRecordings(given, owner, log)
  servePlane((served) => {
    const shared = { nodeId: given.nodeId, bus, recordings, clock, log, telemetry, opus, legBegan: served.legBegan }
    const media = openLocalMedia({ ...shared, afterSlot: sleep.after }, given.settings, closing)
    const gauges = keepGauges(given.gauges, { clock, ticker: media.ticker })
    closing.defer(() => gauges.close())
    void media.warmUp().then(() => owner.tell('ready'))
    return {
      link,
      plane: gauges.onPlane(media),
      beat: gauges.write,
      ticker: media.ticker,
      flush: bus.flush,
      // Its answer goes before its end.
      close: async () => void setImmediate(() => void closing.disposeAsync()),
    }
  })
}

/** Of this thread alone, which only Linux can. Who has no right to it is one among others. docs/operations.md */
function goBeforeOthers(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(niceness)
  } catch {
    // Most users may not, and nothing depends on it.
  }
}

function createFarLog(owner: Far<ThreadOwner>, bound: LogFields = {}): Log {
  const write =
    (level: Parameters<ThreadOwner['log']>[0]) =>
    (message: string, fields: LogFields = {}): void => {
      const told = { ...bound, ...fields }
      try {
        owner.tell('log', level, message, told)
      } catch {
        // What cannot be handed over is told as text.
        owner.tell(
          'log',
          level,
          message,
          Object.fromEntries(Object.entries(told).map(([name, value]) => [name, String(value)])),
        )
      }
    }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    with: (fields) => createFarLog(owner, { ...bound, ...fields }),
  }
}

/** Sound is told in counts and distributions only. */
const farTelemetry = (owner: Far<ThreadOwner>): Telemetry => ({
  isOn: true,
  count: (...told) => owner.tell('count', ...(told as Parameters<ThreadOwner['count']>)),
  observe: (...told) => owner.tell('observe', ...(told as Parameters<ThreadOwner['observe']>)),
  span: noTelemetry.span,
})

/** Files are written here; what is known of them is known by the process. */
function farRecordings(
  { recordings }: ThreadSettings,
  owner: Far<ThreadOwner>,
  log: Log,
): Pick<RecordingStore, 'create'> {
  const folder = createRecordingFolder({ ...recordings, clock, log })
  return {
    create(key) {
      const writer = folder.create(key)
      owner.tell('recordingBegan', key)
      const close = async (): Promise<void> => {
        try {
          await writer.close()
        } finally {
          await owner.ask('recordingEnded', key)
        }
      }
      let closed: Promise<void> | null = null
      return { ...writer, close: () => (closed ??= close()) }
    },
  }
}

await main()
