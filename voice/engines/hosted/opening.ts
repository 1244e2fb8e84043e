/**
 * Owns how a hosted talk begins: the static message of an inbound call, which is heard to its end (nobody is listened to meanwhile); then the
 * agent's first words, on an outbound call after the callee's or when those do not come. A talk that goes on begins with nothing, or with the
 * reply that is due. docs/contract/rest.md "Worker configuration".
 */
import { frameMs } from '../../../model/frame.ts'
import type { EngineConfig } from '../../../model/voice-engine.ts'
import { silenceOf } from '../../../media/codecs/silence.ts'
import type { TurnTaking } from './turn-taking.ts'
import type { TalkDeps } from './talk-deps.ts'
import type { Wire } from './wire.ts'

export type Opening = {
  begin(): void
  /** What the provider hears of this frame: silence as long as nobody is to be listened to. */
  admit(payload: Uint8Array): Uint8Array
  frame(): void
  callerSpoke(): void
  /** What the caller said in the end; empty for no speech. */
  heard(text: string): void
  replyStarted(): void
  /** Text of the agent so far. */
  said(text: string): void
  /** The caller has heard, or has lost, all that the agent has said. */
  playedAll(): void
  /** The agent's first words have been asked for, or the caller has spoken. */
  isOver(): boolean
}

/** `listening`: the caller speaks, or has spoken, and it is not known yet whether that was speech. */
type Phase = 'unbegun' | 'announcing' | 'waiting' | 'listening' | 'over'

/** A static message of 2,000 characters takes about as long. */
const announcedWithin = 180_000 / frameMs
/** A provider that has not said it by then will not. */
const unsaidFrames = 5_000 / frameMs

type Deps = Pick<TalkDeps, 'config' | 'log'> & { readonly wire: Wire; readonly turns: TurnTaking }

export function createOpening({ config, wire, turns, log }: Deps): Opening {
  const announcement = announcementOf(config)
  // Of a provider's session alone nobody has heard anything: what was said is in the history.
  const goesOn = config.history.length > 0
  let phase: Phase = 'unbegun'
  let frames = 0
  const silence = silenceOf(config.formats.hears)
  let announced = ''

  const reply = (): void => {
    phase = 'over'
    turns.expectReply()
    wire.reply(null)
  }
  const listen = (): void => {
    frames = 0
    phase = 'waiting'
    if (config.direction === 'inbound') reply()
  }
  const endAnnouncement = (): void => {
    if (announcement !== null && lettersOf(announced) !== lettersOf(announcement))
      log.warn('the provider did not say the static message word for word', { callId: config.callId })
    listen()
  }
  return {
    begin() {
      if (goesOn) phase = 'over'
      if (goesOn && config.owesReply) return reply()
      if (goesOn) return
      if (announcement === null) return listen()
      phase = 'announcing'
      turns.expectReply()
      wire.say(announcement)
    },
    admit: (payload) => (phase === 'announcing' ? silence : payload),
    frame() {
      frames++
      const isDue = frames >= announcedWithin || turns.quietFrames() >= unsaidFrames
      if (phase === 'announcing' && isDue) endAnnouncement()
      if (phase === 'waiting' && frames * frameMs >= config.worker.firstSpeechTimeout * 1000) reply()
    },
    callerSpoke() {
      if (phase === 'waiting') phase = 'listening'
    },
    heard(text) {
      // A noise at pick-up is no greeting.
      if (phase === 'listening') phase = text.trim() === '' ? 'waiting' : 'over'
    },
    replyStarted() {
      if (phase === 'waiting' || phase === 'listening') phase = 'over'
    },
    said(text) {
      if (phase === 'announcing') announced = text
    },
    playedAll() {
      if (phase === 'announcing') endAnnouncement()
    },
    isOver: () => phase === 'over' || phase === 'listening',
  }
}

function announcementOf({ direction, worker }: EngineConfig): string | null {
  const { inboundStaticMessageEnabled, inboundStaticMessageText = '' } = worker
  const text = inboundStaticMessageText.trim()
  return direction === 'inbound' && inboundStaticMessageEnabled && text !== '' ? text : null
}

const lettersOf = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '')
