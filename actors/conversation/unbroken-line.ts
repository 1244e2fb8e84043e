/**
 * Owns the frames and keys between an actor and a leg in another process, both ways: a bus that was away for a moment has lost some. What of the caller is
 * missing is asked for until it comes, and those behind them are left out until they have come again, in order: the leg keeps them meanwhile, not the
 * actor. What the leg has not had of the agent it gets again. Beside its leg an actor misses nothing, and all passes through.
 */
import { subjectsOf, type Bus, type Subscription } from '../../model/bus.ts'
import { pause, type Clock } from '../../model/clock.ts'
import { decodeFrame, encodeFrame, frameMs, type Frame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import type { KeyEvent, LegReply } from '../../model/leg.ts'
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
  readonly clock: Pick<Clock, 'after'>
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
/** Answers that leave out what the leg still has: it is of an older version, or has none. */
const mostInVain = 3
/** Asked so often at once, then after waits. Whether a leg that answers nobody is still there its watch decides, which ends the line (call/life/leg-watch.ts). */
const askedAtOnce = 3
const [shortestWait, longestWait] = [250, 2_000]
/** Ms. Of unbroken speech a leg has not kept the beginning for longer. */
const askedFor = 120_000

export function createUnbrokenLine({
  bus,
  clock,
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
  /** The leg does not tell what it has not kept: the first that comes is the oldest there is. */
  let mayJump = false
  /** What the leg may not have had, oldest first. */
  let sent: AgentFrame[] = []
  let isAsking = false
  /** What the agent says waits, so that nothing overtakes what was lost. */
  let isHeld = false
  let isClosed = false
  const closing = new AbortController()

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
  const letGo = (): void => {
    if (!isHeld) return
    isHeld = false
    sent.forEach(publish)
  }
  /** The leg has nothing older of what is missing. */
  const passOver = (first: number): void => {
    if (early === null || next === null || first <= next) return
    leftOut(first - next)
    next = first
    if (first > early) early = null
  }
  /** What is kept comes before the answer. True: that says what there still is; null: there is none. */
  const ask = async (): Promise<boolean | null> => {
    isHeld = true
    const command = { type: 'catch_up', epoch, heard: (next ?? 0) - 1 } as const
    const reply: LegReply | null = await commandLeg(bus, callId, command).catch(() => null)
    if (isClosed || reply === null) return null
    if (reply.type !== 'caught_up') return false
    const { first, taken, played } = reply
    if (first === undefined) mayJump = true
    else passOver(first)
    forgetUpTo(taken)
    letGo()
    caughtUp(played)
    return first !== undefined
  }
  const catchUp = async (): Promise<void> => {
    isAsking = true
    let isLate = false
    const cancel = clock.after(askedFor, () => void (isLate = true))
    let inVain = 0
    const isWanted = (): boolean => early !== null && !isClosed && !isLate && inVain < mostInVain
    for (let asked = 1; isWanted(); asked++) {
      if ((await ask()) === false) inVain++
      if (asked < askedAtOnce || !isWanted()) continue
      const wait = Math.min(longestWait, shortestWait * 2 ** (asked - askedAtOnce))
      await pause(clock, wait, closing.signal)
    }
    cancel()
    isAsking = false
    if (isClosed) return
    if (early !== null) goOn()
    letGo()
  }
  const accept = (seq: number): true => {
    if (early !== null && seq >= early) early = null
    next = seq + 1
    return true
  }
  /** Is it the next one? */
  const admits = (seq: number): boolean => {
    if (isClosed) return false
    if (!isKept || next === null) return accept(seq)
    if (seq === next || (mayJump && early !== null && seq > next && seq <= early)) return accept(seq)
    if (seq < next) return false
    early = Math.max(seq, early ?? seq)
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
        if (!isHeld) publish(frame)
      }
    },
    played: forgetUpTo,
    cut: () => void (sent = []),
    restart() {
      goOn()
      mayJump = false
      sent = []
    },
    close() {
      isClosed = true
      // Without a reason of its own an error would be made, with its stack, which nobody reads.
      closing.abort('closed')
    },
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
