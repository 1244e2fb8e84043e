/**
 * Owns the capture of one leg: while somebody wants it, every packet of sound goes into a file for analysers, as it is without SRTP: its headers, and what
 * it carries where that may be recorded at that moment. Bounded in time and bytes; a file whose writer was killed can be read up to there.
 */
import type { BusMessage } from '../../model/bus.ts'
import { fromBytes, toBytes } from '../../model/bus-json.ts'
import { CaptureOrder, type CapturedRtp, type CaptureReply } from '../../model/call-capture.ts'
import type { RecordedParts } from '../../model/leg.ts'
import type { Log } from '../../model/log.ts'
import type { RecordingStore, RecordingWriter } from '../../model/recording-store.ts'
import type { RtpTap, RtpTransport } from '../../model/rtp-transport.ts'
import { pcapHead, pcapRecordOf, type Place } from '../../net/pcap.ts'
import { payloadStartOf } from '../rtp/rtp-wire.ts'

export type LegCapture = {
  /** Never throws, always answers. */
  readonly answer: (message: BusMessage) => void
  /** What of the sound may be kept from here on; nothing unless told. */
  readonly record: (parts: RecordedParts) => void
  /** On hold nothing that comes is recorded. */
  readonly hold: (isHeld: boolean) => void
  /** Resolves when all is on disk. Idempotent. */
  readonly finish: () => Promise<void>
}

type Deps = {
  readonly recordings: Pick<RecordingStore, 'create'>
  readonly now: () => number
  /** Ms since the epoch when `now` was 0. */
  readonly timeOrigin: number
  readonly log: Log
  /** Null: there is no sound yet, or no more. */
  readonly transport: () => Pick<RtpTransport, 'tap'> | null
}

/** Of one file; an hour of headers of a call has 21 MB, half an hour of G.711 40. */
const mostBytes = 64 << 20

type Running = { readonly writer: RecordingWriter; rtp: CapturedRtp; until: number; bytes: number }

export function createLegCapture({ recordings, now, timeOrigin, log, transport }: Deps): LegCapture {
  let parts: RecordedParts = 'none'
  let isOnHold = false
  let running: Running | null = null
  let finished: Promise<void> | null = null
  /** The one that was heard last: where a browser is, nobody else tells. */
  let remote: Place | null = null

  const stop = (): Promise<void> => {
    transport()?.tap?.(null)
    finished ??= running?.writer.close() ?? Promise.resolve()
    running = null
    return finished
  }
  const lost = (error: unknown): void => log.error('a capture was not completed', { error })
  const tap: RtpTap = (direction, packet, wire) => {
    if (!running) return
    const at = now()
    const isOver = at > running.until || running.bytes > mostBytes || running.writer.isWhole?.() === false
    if (isOver) return void stop().catch(lost)
    remote = wire.remote ?? remote
    const theirs = remote ?? nowhere
    const [from, to] = direction === 'in' ? [theirs, wire.local] : [wire.local, theirs]
    const mayKeep = direction === 'out' ? parts !== 'none' : parts === 'both' && !isOnHold
    const isWhole = running.rtp === 'sound' && mayKeep
    const kept = isWhole
      ? packet.length
      : (payloadStartOf(Buffer.from(packet.buffer, packet.byteOffset, packet.length), packet[0] ?? 0) ?? 12)
    const record = pcapRecordOf({ at: timeOrigin + at, from, to, payload: packet }, kept)
    if (record === null) return
    running.writer.append(record)
    running.bytes += record.length
  }
  const begin = ({ key, rtp, ms }: CaptureOrder): CaptureReply => {
    const tapped = transport()
    if (!tapped?.tap) return { type: 'refused', details: 'The call has no sound now.' }
    if (finished) return { type: 'refused', details: 'The call was captured before, and its capture is complete.' }
    if (running) {
      running.rtp = rtp
      running.until = Math.max(running.until, now() + ms)
    } else {
      running = { writer: recordings.create(key), rtp, until: now() + ms, bytes: 0 }
      running.writer.append(pcapHead())
      tapped.tap(tap)
    }
    return { type: 'capturing', rtp, leftMs: running.until - now() }
  }
  return {
    answer(message) {
      const order = CaptureOrder.safeParse(fromBytes(message.payload)).data
      message.respond(toBytes(order ? begin(order) : { type: 'refused', details: 'not an order' }))
    },
    record: (next) => void (parts = next),
    hold: (isHeld) => void (isOnHold = isHeld),
    finish: () => stop().catch(lost),
  }
}

const nowhere: Place = { address: '0.0.0.0', port: 0 }
