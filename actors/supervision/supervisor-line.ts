/**
 * Owns the sound between a call and one supervisor: a web leg of the supervisor's own, which is started like that of any call, hears the mix of both sides,
 * and whose microphone is carried to the call while the call says so. It ends with the browser, with the call, and when the supervisor may not listen any
 * more. docs/supervision.md.
 */
import { subjectsOf, type Bus } from '../../model/bus.ts'
import { fromBytes } from '../../model/bus-json.ts'
import type { Cancel, Clock } from '../../model/clock.ts'
import { bytesOf, decodeFrame, encodeFrame, frameMs, samplesPerFrame } from '../../model/frame.ts'
import type { CallId } from '../../model/ids.ts'
import { LegEvent } from '../../model/leg.ts'
import type { Log } from '../../model/log.ts'
import { Supervised, supervisorSound } from '../../model/supervision.ts'
import type { WebMedia } from '../../media/plane/media-plane.ts'
import { reachLeg } from '../node/leg-link.ts'
import { createMix } from './mix.ts'

type Deps = {
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
  readonly media: WebMedia
  readonly callId: CallId
  /** Of the listening, under which its leg is on the bus. */
  readonly id: string
  mayStill(): Promise<boolean>
  /** Once, unless it was closed, or the call itself told that it is over. */
  ended(): void
}

export type SupervisorLine = {
  /** False: the leg cannot begin. */
  start(): Promise<boolean>
  /** It is gone, which the call is told. Idempotent. */
  end(): void
  /** Idempotent. */
  close(): Promise<void>
}

/** Ms between two looks at what may have ended without a word. */
const lookEvery = 5_000
/** Without a frame of the call: its leg is gone, or its process. */
const silentFor = 10_000
/** Looks between two at the supervisor's role. */
const looksPerRole = 3
const startAttempts = 5

export function createSupervisorLine({ bus, clock, log, media, callId, id, ...deps }: Deps): SupervisorLine {
  const [call, own] = [subjectsOf(callId), subjectsOf(id as CallId)]
  const mix = createMix(samplesPerFrame(supervisorSound))
  let isConnected = false
  let isVoice = false
  let isOver = false
  let closing: Promise<void> | null = null
  let seq = 0
  let voiceSeq = 0
  let heardAt = clock.now()
  let looks = 0

  const hear = (payload: Uint8Array): void => {
    heardAt = clock.now()
    const frame = isConnected ? decodeFrame(payload) : null
    const mixed = frame && mix(frame.payload, isVoice)
    if (!mixed) return
    const sent = { epoch: 0, seq, timestamp: seq * frameMs, payload: bytesOf(mixed) }
    bus.publish(own.down, encodeFrame(sent), true)
    seq++
  }
  const speak = (payload: Uint8Array): void => {
    const frame = isVoice ? decodeFrame(payload) : null
    if (!frame) return
    bus.publish(call.voice, encodeFrame({ ...frame, epoch: 0, seq: voiceSeq++ }), true)
  }
  const told = (payload: Uint8Array): void => {
    const supervised = Supervised.safeParse(fromBytes(payload)).data
    if (!supervised) return
    setVoice(supervised.voice === id)
    // It may have been sent before this one had joined.
    if (hasJoined && !supervised.supervisors.includes(id)) return closeSoon()
    hasJoined ||= supervised.supervisors.includes(id)
  }
  let hasJoined = false
  /** Looks until who has just closed their microphone is judged as one who only listens. */
  let looksToCalm = 0
  const setVoice = (speaks: boolean): void => {
    if (isVoice === speaks) return
    isVoice = speaks
    // Silence tells of a browser that was to speak; after that its next sign of life may be a check of ICE, seconds later.
    media.presence(speaks ? 'left' : 'lost')
    looksToCalm = speaks ? 0 : 2
  }
  const legEvent = (payload: Uint8Array): void => {
    const event = LegEvent.safeParse(fromBytes(payload)).data
    if (event?.type === 'connected') isConnected = true
    if (event?.type === 'disconnected') end()
  }
  const look = async (): Promise<void> => {
    looks++
    const isGone = clock.now() - heardAt > silentFor
    const isFree = looks % looksPerRole !== 0 || (await deps.mayStill().catch(() => true))
    if (isOver) return
    if (isGone || !isFree) return end()
    if (looksToCalm > 0 && --looksToCalm === 0) media.presence('left')
    cancel = clock.after(lookEvery, () => void look())
  }
  let cancel: Cancel = clock.after(lookEvery, () => void look())
  const subscriptions = [
    bus.subscribe(call.heard, ({ payload }) => hear(payload)),
    bus.subscribe(call.supervised, ({ payload }) => told(payload)),
    bus.subscribe(own.up, ({ payload }) => speak(payload)),
    bus.subscribe(own.legEvent, ({ payload }) => legEvent(payload)),
  ]

  const closeSoon = (): void =>
    void close().catch((error: unknown) => log.error('the line of a supervisor did not close', { callId, error }))
  /** The call does not know of it yet. */
  const end = (): void => {
    if (isOver) return
    closeSoon()
    deps.ended()
  }
  const close = (): Promise<void> => (closing ??= closeOnce())
  async function closeOnce(): Promise<void> {
    isOver = true
    cancel()
    for (const subscription of subscriptions) subscription.close()
    await reachLeg(bus, id as CallId, { type: 'close', epoch: 0, reason: 'completed' }).catch(() => null)
    await media.close()
  }
  return {
    async start() {
      const formats = { hears: [supervisorSound], speaks: [supervisorSound] }
      for (let attempt = 0; attempt < startAttempts; attempt++) {
        const reply = await reachLeg(bus, id as CallId, { type: 'start', epoch: 0, ...formats, recording: null })
        if (reply.type === 'started') return true
        if (reply.type === 'refused') return false
      }
      return false
    },
    end,
    close,
  }
}
