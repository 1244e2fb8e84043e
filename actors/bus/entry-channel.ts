/**
 * Owns one end of the way between two threads for the messages of a bus: entries arrive in the order they were sent, by two carriers. What is
 * small and frequent goes by a ring of fixed slots in shared memory (entry-ring.ts); everything else, and what the ring has no room for, goes by message
 * at once, and what was in the ring before it is drained with it. At most `maxPosted` messages and `maxPostedBytes` bytes wait on the other side;
 * what is sent past it is dropped and logged.
 *
 * A receiver that has a beat of its own looks into the ring at each, until it has found nothing for a while. Any other rests as soon as it has drained
 * the ring. One that rests is woken by a message, which the writer sends once for all that it writes in its turn.
 */
import type { MessagePort } from 'node:worker_threads'
import type { Cancel, Clock } from '../../model/clock.ts'
import type { Log } from '../../model/log.ts'
import { noTelemetry, type Telemetry } from '../../model/telemetry.ts'
import { createRingReader, createRingWriter, type Entry } from './entry-ring.ts'

/** The memory of both directions; each end has the other's `incoming` as `outgoing`. */
export type ChannelEnd = {
  readonly port: MessagePort
  readonly incoming: SharedArrayBuffer
  readonly outgoing: SharedArrayBuffer
}

export type EntryChannel = {
  /**
   * `by` ring: it may wait for the next look of the receiver. `isKept`: never dropped (of such entries there are no more than subscriptions). The
   * payload may be used again at once. False: it was dropped.
   */
  send(entry: Entry, by: 'ring' | 'message', isKept?: boolean): boolean
  /** Nothing is delivered any more. Idempotent. */
  close(): void
}

export type ChannelDeps = {
  readonly end: ChannelEnd
  /** The payload is the receiver's own. */
  readonly receive: (entry: Entry) => void
  readonly clock: Clock
  readonly log: Log
  readonly telemetry?: Telemetry
  /** When the receiver looks next, where it has a beat. Absent: when it is woken. */
  readonly nextLook?: (look: () => void) => Cancel
  /** When the other side is woken: what is written until then need not wake it again. Absent: at once. */
  readonly atEndOfTurn?: (wake: () => void) => void
}

/** Null wakes the receiver. */
type Posted = (Entry & { readonly seq: number }) | null

/** After so many looks in vain the receiver waits to be woken. */
const looksInVain = 40
const maxPosted = 65_536
const maxPostedBytes = 64 * 1024 * 1024
const tellDroppedAfter = 100

export function createEntryChannel(deps: ChannelDeps): EntryChannel {
  const { end, receive, clock, log, telemetry = noTelemetry } = deps
  const { nextLook = null, atEndOfTurn = atOnce } = deps
  const { port } = end
  const writer = createRingWriter(end.outgoing)
  const reader = createRingReader(end.incoming)
  const posted = createPostedCount()
  const drops = createDrops(clock, log, telemetry)
  /** By message, and not their turn yet: what was sent before them is still in the ring. */
  const early = new Map<number, Entry & { readonly seq: number }>()
  let sent = 0
  let expected = 0
  let looks = 0
  let cancelLook: Cancel | null = null
  let isClosed = false

  function post(entry: Entry, isKept: boolean): boolean {
    if (!isKept && !posted.hasRoom(entry.payload.length, writer.taken())) {
      drops.add()
      return false
    }
    // A view would be copied with all of the memory behind it.
    const payload = new Uint8Array(entry.payload)
    posted.add(payload.length)
    port.postMessage({ ...entry, payload, seq: sent } satisfies Posted, [payload.buffer])
    sent = (sent + 1) >>> 0
    return true
  }

  function write(entry: Entry): boolean {
    if (!writer.write(entry, sent)) return false
    sent = (sent + 1) >>> 0
    if (writer.wakes()) atEndOfTurn(wake)
    return true
  }

  function wake(): void {
    if (!isClosed) port.postMessage(null satisfies Posted)
  }

  /** What fails at one entry holds up no other. */
  function hand(entry: Entry): void {
    try {
      receive(entry)
    } catch (error) {
      log.error('an entry of a thread could not be carried on', { kind: entry.kind, error })
    }
  }

  /** How many entries were delivered. */
  function drain(): number {
    let delivered = 0
    while (!isClosed) {
      const entry = reader.peek(expected)
      if (entry) {
        expected = (expected + 1) >>> 0
        delivered += 1
        hand(entry)
        reader.pass()
        continue
      }
      const waiting = early.get(expected)
      if (!waiting) return delivered
      early.delete(expected)
      expected = (expected + 1) >>> 0
      delivered += 1
      reader.took(waiting.payload.length)
      hand(waiting)
    }
    return delivered
  }

  function look(): void {
    cancelLook = null
    if (isClosed) return
    looks = drain() > 0 ? 0 : looks + 1
    restOrLook()
  }

  /** What was written before the writer could see that nobody looks any more is found by looking once more. */
  function restOrLook(): void {
    const mayRest = nextLook === null || looks >= looksInVain
    if (!isClosed && !(mayRest && reader.rests())) cancelLook ??= (nextLook ?? nextTurn)(look)
  }

  function onMessage(message: Posted): void {
    if (isClosed) return
    if (message) early.set(message.seq, message)
    looks = 0
    drain()
    restOrLook()
  }

  port.on('message', onMessage)
  reader.rests()
  return {
    send: (entry, by, isKept = false) => !isClosed && ((by === 'ring' && write(entry)) || post(entry, isKept)),
    close() {
      isClosed = true
      cancelLook?.()
      drops.close()
      early.clear()
      port.off('message', onMessage)
      port.close()
    },
  }
}

const atOnce = (wake: () => void): void => wake()

/** Others have their turn before. */
function nextTurn(look: () => void): Cancel {
  const immediate = setImmediate(look)
  return () => clearImmediate(immediate)
}

/** What is on its way by message, by what the receiver says it has taken; both count on and wrap at 2³². */
function createPostedCount() {
  let messages = 0
  let bytes = 0
  return {
    hasRoom: (size: number, taken: { readonly messages: number; readonly bytes: number }): boolean =>
      (messages - taken.messages) >>> 0 < maxPosted && ((bytes - taken.bytes) >>> 0) + size <= maxPostedBytes,
    add(size: number) {
      messages = (messages + 1) >>> 0
      bytes = (bytes + size) >>> 0
    },
  }
}

/** Told together, a moment after the first. */
function createDrops(clock: Clock, log: Log, telemetry: Telemetry) {
  let dropped = 0
  let cancel: Cancel | null = null
  const tell = (): void => {
    cancel = null
    log.error('bus is full, messages were dropped', { dropped })
    telemetry.count('bus.dropped', {}, dropped)
    dropped = 0
  }
  return {
    add() {
      dropped += 1
      cancel ??= clock.after(tellDroppedAfter, tell)
    },
    close() {
      if (!cancel) return
      cancel()
      tell()
    },
  }
}
