/**
 * Owns the media of one thread: the beat, the codecs, the sockets of browsers, the ports of telephones, and how a leg is made for either. In a process
 * without media threads it is the process's own.
 */
import { createOpusLibrary, loadNativeEncoder } from '../media/codecs/opus.ts'
import { createInTurn } from '../model/in-turn.ts'
import { createActorBeats } from '../media/leg/actor-beats.ts'
import { createLeg } from '../media/leg/leg.ts'
import { createPhoneLines, type CreateLeg } from '../media/plane/local-plane.ts'
import type { MediaPlane, PhoneCallLine } from '../media/plane/media-plane.ts'
import { createTicker, type Ticker, type TickerDeps } from '../media/ticker/ticker.ts'
import { createWebMedia } from '../gateway/web-media.ts'
import { createWeriftPeers } from '../gateway/werift/peer.ts'
import type { Bus } from '../model/bus.ts'
import type { Clock } from '../model/clock.ts'
import type { NodeId } from '../model/ids.ts'
import type { Log } from '../model/log.ts'
import type { RecordingStore } from '../model/recording-store.ts'
import type { Telemetry } from '../model/telemetry.ts'
import { now } from './clock.ts'
import type { LegBegan, MediaSettings } from './media-settings.ts'
import { openMediaPorts } from './open-media-ports.ts'

type Deps = {
  readonly nodeId: NodeId
  readonly bus: Bus
  readonly recordings: Pick<RecordingStore, 'create'>
  readonly clock: Clock
  readonly log: Log
  readonly telemetry: Telemetry
  /** The result is called when the leg is gone. */
  readonly legBegan: LegBegan
  readonly opus?: ReturnType<typeof createOpusLibrary>
  /** How the beat waits, unless by timers. */
  readonly afterSlot?: TickerDeps['after']
}

export type LocalMedia = MediaPlane & {
  readonly ticker: Ticker
  /** Binds the sockets of browsers. Rejects with what the system says. */
  warmUp(): Promise<void>
}

/** A browser that has not got its media by then never will. */
const connectWithin = 60_000

export function openLocalMedia(deps: Deps, settings: MediaSettings, closing: AsyncDisposableStack): LocalMedia {
  const { nodeId, bus, recordings, clock, log, telemetry } = deps
  const { opus = createOpusLibrary(loadNativeEncoder, settings.media.opusComplexity) } = deps
  const { phone } = settings
  const ticker = createTicker({
    now,
    after: deps.afterSlot ?? ((ms, action) => clock.after(ms, action)),
    telemetry,
    failed: (error) =>
      log.error('a part of a call failed at the beat of its sound, and the call goes on without it', { error }),
  })
  closing.defer(() => ticker.close())
  const inbandKeys = phone?.inbandKeys ?? false
  const { timeOrigin } = performance
  const { isSilent, close } = createActorBeats({ bus, now })
  closing.defer(close)
  const inTurn = createInTurn({ now, later: setImmediate })
  const sound = { ticker, opus, now, inbandKeys, timeOrigin, inTurn }
  const shared = { nodeId, bus, recordings, log, telemetry, isSilent, ...sound }
  const createCountedLeg: CreateLeg = (line) => {
    const onClosed = (): void => {
      ended()
      line.onClosed()
    }
    const leg = createLeg({ ...shared, ...line, onClosed })
    const ended = deps.legBegan(line.callId, leg.close)
    return leg
  }
  const { address, offersInterfaces, publicAddress, ports: portRange } = settings.media
  const peers = createWeriftPeers({
    bindAddress: address,
    offersInterfaces,
    publicAddress: publicAddress ?? undefined,
    portRange,
    ticker,
    now,
    log,
  })
  closing.defer(() => peers.close())
  const ports = phone && openMediaPorts(phone, log)
  closing.defer(async () => ports?.close())
  const openPhone = ports && createPhoneLines({ ports, ticker, log }, createCountedLeg)
  return {
    ticker,
    warmUp: async () => (settings.isForBrowsers ? peers.warmUp() : undefined),
    openPhone: async () => {
      if (!openPhone) throw new Error('there are no ports for telephones')
      const { promise, resolve, reject } = Promise.withResolvers<PhoneCallLine>()
      inTurn(() => void openPhone().then(resolve, reject))
      return promise
    },
    openWeb: (callId, events, isFurther = false) =>
      createWebMedia(callId, {
        clock,
        createPeer: peers.createPeer,
        createLeg: (of, onClosed: () => void) =>
          createCountedLeg({ callId: of, isFurther, onClosed, connectWithin, signaling: null }),
        ...events,
      }),
  }
}
