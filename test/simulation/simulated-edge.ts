/**
 * Owns the edge of a simulated world: the legs of its calls, with callers who listen, answer, press keys and hang up as planned. A leg refuses whoever has
 * been taken over, says its end once, and stays a while for who asks; what it keeps of its caller for whom, the real parts decide.
 */
import { createFrameQueue } from '../../media/leg/frame-queue.ts'
import { createKeptFrames } from '../../media/leg/kept-frames.ts'
import { subjectsOf, type Bus, type Subscription } from '../../model/bus.ts'
import { dialSubject, DialRequest } from '../../model/dial.ts'
import { decodeFrame, encodeFrame } from '../../model/frame.ts'
import type { AccountId, CallId, WorkerId } from '../../model/ids.ts'
import { LegCommand, type KeyEvent, type LegEvent, type LegReply } from '../../model/leg.ts'
import type { Telephony } from '../../model/telephony.ts'
import type { Process } from './loop.ts'
import type { Talk } from './simulated-engine.ts'

export type Callee = Talk & {
  /** How who is called takes it. */
  readonly answers: 'yes' | 'busy' | 'never'
  /** What the caller presses and types, so many ms after the answer; each only once. */
  readonly keys: readonly { readonly in: number; readonly event: KeyEvent }[]
}

/** What a caller has done, in this order: an utterance by its mark, a key as the engine tells it. */
export type Done = number | string
export const wordsOf = (event: KeyEvent): string => (event.type === 'dtmf' ? `[${event.digit}]` : event.text)

export type Leg = {
  readonly callId: CallId
  connect(): void
  ring(): void
  end(event: LegEvent): void
  /** Without a word. */
  close(): void
}

const bytes = (message: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(message))
const json = (payload: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(payload))
const bytesOfFrame = 640
const frameOf = (mark: number, isEnd: boolean): Uint8Array => {
  const payload = new Uint8Array(bytesOfFrame)
  payload[0] = mark
  payload[1] = isEnd ? 1 : 0
  return payload
}

const frameEvery = 20
const thinks = 300
/** A caller who hears nothing for so long says it again. */
const repeats = 4_000
/** A line is never without frames for long: by the next one it is known that one was lost. */
const breathes = 1_000
const staysFor = 30_000

export function createSimulatedEdge(deps: {
  readonly process: Process
  readonly bus: Bus
  readonly telephony: Pick<Telephony, 'waysOut' | 'mayDial' | 'carriedBy'>
  talkOf(callId: string): Callee
  talkOfNumber(number: string): Callee
  /** The leg of this call is made. */
  begins(callId: CallId, talk: Callee): void
  /** The caller has said something, or pressed a key. */
  did(callId: CallId, what: Done): void
  /** Somebody's telephone rings for this call. */
  rang(callId: CallId): void
  refused(callId: CallId, command: LegCommand, fence: number): void
}) {
  const { bus, process, telephony } = deps
  const { clock } = process
  const legs = new Map<CallId, Leg>()

  const createLeg = (callId: CallId, talk: Callee = deps.talkOf(callId)): Leg => {
    const subjects = subjectsOf(callId)
    deps.begins(callId, talk)
    let fence = 0
    let connected = false
    let ringing: string | null = null
    let ended: LegEvent | null = null
    let isClosed = false
    const queue = createFrameQueue()
    let isPlaying = false
    let lastPlayedSeq = -1
    let line = 0
    let spoken = 0
    /** Whom it listens to. */
    let listener = -1
    const cancels: (() => void)[] = []
    let cancelRepeat = (): void => undefined
    const tell = (event: LegEvent): void => bus.publish(subjects.legEvent, bytes(event))
    const isOver = (): boolean => ended !== null || isClosed
    const kept = createKeptFrames({ send: (frame) => bus.publish(subjects.up, encodeFrame(frame)), tell })
    const sound = (payload: Uint8Array): void =>
      kept.heard({ epoch: listener, seq: spoken, timestamp: spoken++ * 20, payload })

    const speak = (): void => {
      if (isOver() || !connected) return
      deps.did(callId, line)
      for (const isEnd of [false, true]) sound(frameOf(line, isEnd))
      awaitAnswer()
    }
    const breathe = (): void => {
      if (isOver()) return
      sound(frameOf(0, false))
      cancels.push(clock.after(breathes, breathe))
    }
    const press = (event: KeyEvent): void => {
      if (isOver()) return
      deps.did(callId, wordsOf(event))
      kept.pressed(event)
    }
    const start = (command: Extract<LegCommand, { type: 'start' }>): LegReply => {
      const { epoch, node, numbersKeys = false, settled } = command
      if (epoch !== listener) {
        if (settled?.epoch === listener) kept.settled(settled)
        queue.restart(bytesOfFrame)
        lastPlayedSeq = -1
      }
      listener = epoch
      awaitAnswer()
      const hears = command.hears[0]!
      const { waits, keeps, ...has } = kept.begin({
        epoch,
        hears,
        isElsewhere: true,
        asks: node !== undefined,
        numbersKeys,
      })
      return {
        type: 'started',
        hears,
        speaks: command.speaks[0]!,
        ...(waits && { waits: has }),
        ...(keeps && { keeps: true }),
      }
    }
    /** Each utterance has a mark of its own; one that is said again has another. */
    const sayNext = (): void => {
      line += 1
      speak()
    }
    const awaitAnswer = (): void => {
      cancelRepeat()
      cancelRepeat = clock.after(repeats, sayNext)
    }
    const play = (): void => {
      if (isOver()) return
      const seq = queue.shift()?.seq
      if (seq === undefined) {
        isPlaying = false
        tell({ type: 'drained', lastPlayedSeq })
        if (line < 200) cancels.push(clock.after(thinks, sayNext))
        awaitAnswer()
        return
      }
      if (!isPlaying) tell({ type: 'sounding', seq })
      isPlaying = true
      lastPlayedSeq = seq
      clock.after(frameEvery, play)
    }
    const replyTo = (command: LegCommand): LegReply => {
      switch (command.type) {
        case 'start':
          return start(command)
        case 'flush':
          queue.clear()
          return { type: 'flushed', lastPlayedSeq }
        case 'close':
          close()
          return { type: 'closed', recordedMs: null }
        case 'ping':
          return { type: 'here', connected, ended, ...(ringing !== null && !connected && !ended && { ringing }) }
        case 'catch_up':
          if (command.epoch !== listener) return { type: 'refused', details: 'not started' }
          return {
            type: 'caught_up',
            first: kept.again(command.heard + 1),
            played: lastPlayedSeq,
            taken: queue.rewind(),
          }
        case 'listens':
          kept.listens()
          return { type: 'accepted' }
        case 'settled':
          kept.settled(command)
          return { type: 'accepted' }
        case 'keep':
          kept.keep(command.keys)
          return { type: 'accepted' }
        case 'answer':
          if (!connected) clock.after(50, connect)
          return { type: 'accepted' }
        case 'record':
        case 'supervise':
        case 'says':
        case 'send_dtmf':
        case 'transfer':
          return { type: 'accepted' }
      }
    }
    const subscriptions: Subscription[] = [
      bus.subscribe(subjects.legCommand, (message) => {
        const command = LegCommand.parse(json(message.payload))
        if (command.epoch < fence) {
          deps.refused(callId, command, fence)
          return message.respond(bytes({ type: 'refused', details: 'taken over' }))
        }
        fence = command.epoch
        message.respond(bytes(replyTo(command)))
      }),
      bus.subscribe(subjects.down, (message) => {
        const frame = decodeFrame(message.payload)
        if (!frame || frame.epoch !== fence || frame.epoch !== listener || isOver()) return
        if (!queue.push(frame)) return
        cancelRepeat()
        if (!isPlaying && queue.size() === 1) clock.after(0, play)
      }),
    ]
    const quiet = (): void => {
      cancelRepeat()
      for (const cancel of cancels.splice(0)) cancel()
    }
    const close = (): void => {
      isClosed = true
      quiet()
      for (const subscription of subscriptions) subscription.close()
      legs.delete(callId)
    }
    const end = (event: LegEvent): void => {
      if (isOver()) return
      ended = event
      quiet()
      tell(event)
      clock.after(staysFor, close)
    }
    const connect = (): void => {
      if (isOver() || connected) return
      connected = true
      tell({ type: 'connected', providerStatus: '200 OK' })
      breathe()
      for (const { in: ms, event } of talk.keys) cancels.push(clock.after(ms, () => press(event)))
      cancels.push(
        clock.after(talk.patience, () =>
          end({ type: 'disconnected', cause: 'hung_up', details: 'enough', endedBy: 'caller' }),
        ),
      )
    }
    const ring = (): void => {
      if (isOver()) return
      ringing = '180 Ringing'
      tell({ type: 'ringing', providerStatus: ringing })
    }
    const leg: Leg = { callId, connect, ring, end, close }
    legs.set(callId, leg)
    return leg
  }

  const dial = async ({ callId, accountId, workerId, epoch }: DialRequest, leg: Leg): Promise<void> => {
    const id = callId as CallId
    const fail = (status: 'busy' | 'no_answer', providerStatus: string): void =>
      leg.end({ type: 'dial_failed', outcome: { status }, providerStatus, endedBy: 'caller' })
    const ways = await telephony.waysOut(accountId as AccountId, workerId as WorkerId, id)
    if ('sipStatus' in ways) return fail('no_answer', '503 No Way')
    await bus.flush()
    const may = await telephony.mayDial(id, epoch)
    if (may === 'was_dialed') return fail('no_answer', '500 Dialed')
    // The present actor of the call must not hear of it.
    if (may === 'passed_on') return leg.close()
    deps.rang(id)
    const { answers } = deps.talkOf(id)
    clock.after(200, () => leg.ring())
    if (answers === 'yes') clock.after(1_500, () => leg.connect())
    if (answers === 'busy') clock.after(900, () => fail('busy', '486 Busy Here'))
    if (answers === 'never') clock.after(4_000, () => fail('no_answer', '480 Temporarily Unavailable'))
  }
  const dials = bus.subscribe(
    dialSubject,
    (message) => {
      const request = DialRequest.parse(json(message.payload))
      const leg =
        legs.get(request.callId as CallId) ?? createLeg(request.callId as CallId, deps.talkOfNumber(request.toNumber))
      message.respond(bytes({ type: 'dialing' }))
      dial(request, leg).catch(() =>
        leg.end({ type: 'dial_failed', outcome: { status: 'no_answer' }, providerStatus: null }),
      )
    },
    { queue: 'edges' },
  )
  return {
    createLeg,
    legs: () => legs.size,
    close: () => dials.close(),
  }
}
