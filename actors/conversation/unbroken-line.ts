/**
 * Owns the frames and keys between an actor and a leg in another process, both ways: a bus that was away for a moment has lost some. What of the caller is
 * missing is asked for, and those behind them are left out until they have come again, in order; what the leg has not had of the agent it gets again.
 * Beside its leg an actor misses nothing, and all passes through.
 */
import { subjectsOf, type Bus, type Subscription } from '../../model/bus.ts'
import { decodeFrame, encodeFrame, frameMs, type Frame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import type { KeyEvent } from '../../model/leg.ts'
import { commandLeg } from '../node/leg-link.ts'

export type UnbrokenLine = {
  /** A frame of the caller has come. */
  hear(frame: Frame): void
  /** The caller has pressed or typed something; one without a number is of a leg that gives none. */
  press(event: KeyEvent): void
  /** Frames of the agent, each newer than the one before. */
  send(frames: readonly AgentFrame[]): void
  /** Frames up to this one were played. */
  played(seq: number): void
  /** What was sent and not played is wanted by nobody any more. */
  cut(): void
  /** The leg is another one, and counts anew. */
  restart(): void
  /** Nothing more is taken or told. */
  close(): void
}

type AgentFrame = { readonly seq: number; readonly payload: Uint8Array }

export type UnbrokenLineDeps = {
  readonly bus: Bus
  readonly callId: CallId
  readonly epoch: number
  /** The leg keeps what the caller says. */
  readonly isKept: boolean
  /** The first that comes; null: whichever does. */
  readonly firstHeard: number | null
  take(frame: Frame): void
  takeKey(event: KeyEvent): void
  /** So many frames of the caller the leg has not kept: pauses, as long as there were some. */
  leftOut(frames: number): void
  /** A way was interrupted; `lastPlayedSeq` may have been told meanwhile. */
  caughtUp(lastPlayedSeq: number): void
}

/** As many as a leg queues: 120 s. */
const maxSent = 6_000
const mostAsked = 3

export function createUnbrokenLine({
  bus,
  callId,
  epoch,
  isKept,
  firstHeard,
  take,
  takeKey,
  leftOut,
  caughtUp,
}: UnbrokenLineDeps): UnbrokenLine {
  const { down } = subjectsOf(callId)
  /** Of the caller's frames and keys the next one; null: whichever comes. */
  let next = firstHeard
  /** While some are missing and asked for: the newest that came too early. */
  let early: number | null = null
  /** What the leg may not have had, oldest first. */
  let sent: AgentFrame[] = []
  let isAsking = false
  let isClosed = false

  const publish = ({ seq, payload }: AgentFrame): void =>
    bus.publish(down, encodeFrame({ epoch, seq, timestamp: seq * frameMs, payload }), true)
  const forgetUpTo = (seq: number): void => {
    const first = sent.findIndex((frame) => frame.seq > seq)
    sent.splice(0, first === -1 ? sent.length : first)
  }
  const goOn = (): void => {
    early = null
    next = null
  }
  const ask = () => commandLeg(bus, callId, { type: 'catch_up', epoch, heard: (next ?? 0) - 1 }).catch(() => null)
  /** What the agent says meanwhile waits, so that nothing overtakes what was lost. */
  const catchUp = async (): Promise<void> => {
    isAsking = true
    let reply = await ask()
    // What is kept comes before the answer; it was lost again, or there is none.
    for (let again = 1; early !== null && !isClosed && again < mostAsked; again++) reply = await ask()
    isAsking = false
    if (isClosed) return
    if (early !== null) goOn()
    if (reply?.type === 'caught_up') forgetUpTo(reply.taken)
    sent.forEach(publish)
    if (reply?.type === 'caught_up') caughtUp(reply.played)
  }
  const accept = (seq: number): true => {
    early = null
    next = seq + 1
    return true
  }
  /** Is it the next one? */
  const admits = (seq: number): boolean => {
    if (isClosed) return false
    if (!isKept || next === null) return accept(seq)
    // Of what is kept the oldest may be gone.
    if (seq === next || (early !== null && seq > next && seq <= early)) return accept(seq)
    if (seq < next) return false
    early = seq
    if (!isAsking) void catchUp()
    return false
  }
  const skip = (seq: number): void => {
    if (isClosed || next === null || seq < next) return
    leftOut(seq + 1 - next)
    next = seq + 1
    if (early !== null && seq >= early) early = null
  }
  return {
    hear(frame) {
      if (frame.payload.length === 0) skip(frame.seq)
      else if (admits(frame.seq)) take(frame)
    },
    press(event) {
      const { line } = event
      if (line ? line.epoch === epoch && admits(line.seq) : !isClosed) takeKey(event)
    },
    send(frames) {
      for (const frame of frames) {
        // The engine may use its buffer again.
        if (isKept && sent.length < maxSent) sent.push({ ...frame, payload: frame.payload.slice() })
        if (!isAsking) publish(frame)
      }
    },
    played: forgetUpTo,
    cut: () => void (sent = []),
    restart() {
      goOn()
      sent = []
    },
    close: () => void (isClosed = true),
  }
}

type Hearing = Pick<UnbrokenLineDeps, 'bus' | 'callId' | 'epoch'> & { legSeen?(): void }

/** What the leg sends for this actor goes into the line, until that is closed with the result. */
export function hearLine({ bus, callId, epoch, legSeen }: Hearing, line: UnbrokenLine): Subscription {
  const hearing = bus.subscribe(subjectsOf(callId).up, ({ payload }) => {
    const frame = decodeFrame(payload)
    if (frame?.epoch !== epoch) return
    legSeen?.()
    line.hear(frame)
  })
  return {
    close() {
      hearing.close()
      line.close()
    },
  }
}
