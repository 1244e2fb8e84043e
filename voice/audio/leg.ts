/**
 * Owns one leg: the media end of a call on the bus. It answers commands, tells events, carries frames both ways and knows no
 * business rule. It outlives its actor: commands and frames of an actor that was taken over are refused by their epoch.
 */
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { toBytes } from '../../model/bus-json.ts'
import { decodeFrame, encodeFrame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import type { LegEvent } from '../../model/leg.ts'
import type { Log } from '../../model/log.ts'
import type { RecordingStore } from '../../model/recording-store.ts'
import type { RtpTransport, RtpTransportHandlers, TransportStats } from '../../model/rtp-transport.ts'
import { createLegCommands } from './leg-commands.ts'
import { createLegEnding, type LegEnding } from './leg-ending.ts'
import { createLegMedia, type LegMedia, type MediaStats } from './leg-media.ts'
import { createLegWire, type LegWire } from './leg-wire.ts'
import type { OpusLibrary } from './opus.ts'
import type { Ticker } from './ticker.ts'

export type LegDeps = {
  readonly callId: CallId
  readonly bus: Bus
  readonly ticker: Ticker
  readonly opus: OpusLibrary
  readonly recordings: RecordingStore
  readonly log: Log
  /** The ticker's own time: milliseconds that never jump. */
  readonly now: () => number
  /** Told once, when nothing of the leg is left. */
  readonly onClosed: () => void
}

export type Leg = {
  /** What the transport under the leg calls. */
  readonly handlers: RtpTransportHandlers
  /** Gives the leg its transport; it belongs to the leg from here on. */
  readonly attach: (transport: RtpTransport) => void
  /** A key press that came another way than by RTP. */
  readonly dtmf: (digit: string) => void
  /** The caller hung up by another way than the media's: resolves when the media end is closed and the recording complete. */
  readonly hangUp: (details: string) => Promise<void>
  readonly stats: () => LegStats
  /** Idempotent; tells no event. */
  readonly close: () => Promise<void>
}

type LegStats = MediaStats & {
  readonly transport: TransportStats | null
}

export function createLeg(deps: LegDeps): Leg {
  const { bus, log, now } = deps
  const subjects = subjectsOf(deps.callId)

  const tell = (event: LegEvent) => bus.publish(subjects.legEvent, toBytes(event))
  const tellDtmf = (digit: string) => tell({ type: 'dtmf', digit })
  /** A bug in one call's sound ends that call and no other. */
  const guarded = (action: () => void) => {
    try {
      if (!ending.isOver()) action()
    } catch (error) {
      log.error('leg failed', { error })
      void ending.end('failed', 'internal error')
    }
  }
  const media = createLegMedia({
    ...deps,
    send: (packet) => wire.send(packet),
    heard: (frame) => bus.publish(subjects.up, encodeFrame(frame)),
    dtmf: tellDtmf,
    drained: (lastPlayedSeq) => tell({ type: 'drained', lastPlayedSeq }),
  })
  const connected = (providerStatus: string) => {
    tell({ type: 'connected', providerStatus })
    media.live()
  }
  const wire = createLegWire({
    now,
    negotiated: (audio) => guarded(() => media.negotiated(audio)),
    connected: (providerStatus) => guarded(() => connected(providerStatus)),
    packet: (packet) => guarded(() => media.packet(packet)),
    disconnected: (cause, details) => void ending.end(cause, details),
  })
  const release = () => {
    for (const leave of leaving) leave()
    deps.onClosed()
  }
  const ending = createLegEnding({ now, tell, finish: () => finished(media, wire, log), release })
  const leaving = joined(deps, { media, wire, ending, guarded })

  return {
    handlers: wire.handlers,
    attach: wire.attach,
    dtmf: (digit) => guarded(() => tellDtmf(digit)),
    hangUp: (details) => ending.end('hung_up', details),
    stats: () => ({ ...media.stats(), transport: wire.transport()?.stats() ?? null }),
    close: async () => void (await ending.close()),
  }
}

type Parts = {
  readonly media: LegMedia
  readonly wire: LegWire
  readonly ending: LegEnding
  readonly guarded: (action: () => void) => void
}

/** Puts the parts on the bus and on the beat; the results take them off. */
function joined({ bus, ticker, callId }: LegDeps, { media, wire, ending, guarded }: Parts): (() => void)[] {
  const subjects = subjectsOf(callId)
  const commands = createLegCommands({
    isConnected: wire.isConnected,
    isOver: ending.isOver,
    start: (command) => guarded(() => media.start(command)),
    flush: media.flush,
    close: ending.close,
  })
  const play = (bytes: Uint8Array) => {
    const frame = decodeFrame(bytes)
    if (frame !== null && commands.isCurrent(frame.epoch)) media.push(frame)
  }
  const tick = (at: number) => {
    media.tick(at)
    const lost = wire.lost()
    if (lost !== null) void ending.end('media_lost', lost)
  }
  const subscriptions = [
    bus.subscribe(subjects.legCommand, commands.answer),
    bus.subscribe(subjects.down, ({ payload }) => guarded(() => play(payload))),
  ]
  const leave = ticker.join((at) => {
    guarded(() => tick(at))
    ending.tick()
  })
  return [leave, ...subscriptions.map((subscription) => () => subscription.close())]
}

/** A recording that could not be completed is lost, the call is not. */
async function finished(media: LegMedia, wire: LegWire, log: Log): Promise<number | null> {
  const [recorded] = await Promise.allSettled([media.finish(), wire.close()])
  if (recorded.status === 'fulfilled') return recorded.value
  log.error('recording was not completed', { error: recorded.reason })
  return null
}
