/**
 * Owns the lines that a media thread carries, as the edges have them (media-plane.ts): what is asked of them goes over the link, what must be known
 * at once is mirrored. When the thread is gone, each of its legs is told lost, and nothing of it is waited for.
 */
import type { Clock } from '../../model/clock.ts'
import { deadline } from '../../model/deadline.ts'
import type { CallId } from '../../model/ids.ts'
import type { LegHandlers } from '../../model/rtp-transport.ts'
import { addressFor, type Reached } from '../rtp/media-ports.ts'
import {
  createMirror,
  mirrored,
  type PhoneMethods,
  type PhoneOwnerMethods,
  type PlaneMethods,
  type WebMethods,
  type WebOwnerMethods,
} from './far-lines.ts'
import type { Far, Link } from './link.ts'
import { phoneEvents, type MediaPlane, type PhoneCallLine, type PhoneLeg, type PhoneLegWanted } from './media-plane.ts'

type Deps = {
  readonly link: Link
  readonly clock: Pick<Clock, 'after'>
  /** Of the ports for telephones. */
  readonly reached: Reached
  /** The thread that had this leg is gone; its call does not know yet. */
  readonly legLost: (callId: CallId, reason: Error) => void
}

/** Ms. Who opens a line has others to open it on; an answer or a leg that comes later than this helps no caller. */
const opensWithin = 2_000
const answersWithin = 5_000

export type RemotePlane = MediaPlane & {
  /** Lines that are open. */
  lines(): number
}

export function createRemotePlane({ link, clock, reached, legLost }: Deps): RemotePlane {
  const far = link.to<PlaneMethods>(0)
  const open = new Set<number>()
  let opened = 0
  const nextLine = (): Line => {
    const id = ++opened
    open.add(id)
    return { id, link, clock, legLost, ended: () => void open.delete(id) }
  }
  return {
    lines: () => open.size,
    async openPhone() {
      const line = nextLine()
      const mirror = createMirror()
      const asked = far.ask('openPhone', line.id, mirror)
      try {
        const local = await inTime(clock, opensWithin, asked)
        return phoneLine(line, { local, mirror: new Int32Array(mirror), reached })
      } catch (error) {
        line.ended()
        // Nobody wants any more what is opened after all.
        asked.then(() => link.to<PhoneMethods>(line.id).tell('close', undefined), ignore)
        throw error
      }
    },
    openWeb(callId, events, isFurther = false) {
      const line = nextLine()
      const mirror = createMirror()
      far.tell('openWeb', line.id, { callId, isFurther }, mirror)
      return webLine(line, { callId, events, mirror: new Int32Array(mirror) })
    },
  }
}

type Line = {
  readonly id: number
  readonly link: Link
  readonly clock: Pick<Clock, 'after'>
  readonly legLost: (callId: CallId, reason: Error) => void
  /** Idempotent. */
  ended(): void
}

type PhoneParts = {
  readonly local: PhoneCallLine['local']
  readonly mirror: Int32Array
  readonly reached: Reached
}

function phoneLine(line: Line, { local, mirror, reached }: PhoneParts): PhoneCallLine {
  const far = line.link.to<PhoneMethods>(line.id)
  return {
    local,
    addressFor: (family) => addressFor(family, reached),
    use: (session) => far.tell('use', session),
    hearsKeys: () => Atomics.load(mirror, mirrored.hearsKeys) === 1,
    packetsReceived: () => Atomics.load(mirror, mirrored.packets),
    async close(reason) {
      line.ended()
      // Of a thread that is gone the ports are free.
      await far.ask('close', reason).catch(ignore)
    },
    begin: (wanted) => beginLeg(line, far, wanted),
  }
}

function beginLeg(line: Line, far: Far<PhoneMethods>, wanted: PhoneLegWanted): PhoneLeg {
  const { callId, isFurther = false, signaling, connectWithin } = wanted
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const end = (): void => {
    line.ended()
    unserve()
    wanted.onClosed()
    resolve()
  }
  const unserve = line.link.serve(
    line.id,
    {
      answer: signaling.answer,
      transfer: signaling.transfer,
      sendDtmf: signaling.sendDtmf,
      hangUp: wanted.hangUp,
      closed: end,
    } satisfies PhoneOwnerMethods,
    (reason) => {
      line.legLost(callId, reason)
      wanted.hangUp('failed')
      end()
    },
  )
  const opened = inTime(line.clock, answersWithin, far.ask('begin', { callId, isFurther }, connectWithin))
  opened.catch(ignore)
  return {
    handlers: handlersOf(far),
    dtmf: (digit) => far.tell('dtmf', digit),
    opened,
    async close(reason) {
      await far.ask('closeLeg', reason).catch(ignore)
      await closed
    },
  }
}

const handlersOf = (far: Far<PhoneMethods>): PhoneLeg['handlers'] =>
  Object.fromEntries(
    phoneEvents.map((name) => [name, (...args: Parameters<LegHandlers[typeof name]>) => far.tell('event', name, args)]),
  ) as PhoneLeg['handlers']

type WebParts = {
  readonly callId: CallId
  readonly events: Parameters<MediaPlane['openWeb']>[1]
  readonly mirror: Int32Array
}

function webLine(line: Line, { callId, events, mirror }: WebParts): ReturnType<MediaPlane['openWeb']> {
  const far = line.link.to<WebMethods>(line.id)
  let hasLeg = false
  let isOver = false
  const gone = (): void => {
    if (isOver) return
    isOver = true
    line.ended()
    unserve()
    events.gone()
  }
  const unserve = line.link.serve(
    line.id,
    {
      legClosed: events.legClosed,
      failed: (message) => events.failed(new Error(message)),
      gone,
    } satisfies WebOwnerMethods,
    (reason) => {
      if (hasLeg) {
        line.legLost(callId, reason)
        events.legClosed('failed')
      }
      gone()
    },
  )
  return {
    async answer(offer) {
      const asked = far.ask('answer', offer)
      // Also behind the deadline, by a thread that stood still: what ends then ends as a leg does.
      asked.then(() => void (hasLeg = true), ignore)
      return inTime(line.clock, answersWithin, asked)
    },
    addCandidate: (candidate) => far.ask('addCandidate', candidate),
    dtmf: (digits) => far.tell('dtmf', digits),
    typed: (text) => far.tell('typed', text),
    hangUp(details) {
      far.tell('hangUp', details)
      return hasLeg
    },
    wasReached: () => Atomics.load(mirror, mirrored.reached) === 1,
    presence: (presence) => far.tell('presence', presence),
    release: () => far.tell('release'),
    close: () => far.ask('close').catch(gone),
  }
}

class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}

const inTime = <Value>(clock: Pick<Clock, 'after'>, ms: number, work: Promise<Value>): Promise<Value> =>
  deadline(clock, ms, work, () => {
    throw new NoAnswer('a media thread did not answer in time')
  })

function ignore(): void {
  // The thread is gone, or its line was over already.
}
