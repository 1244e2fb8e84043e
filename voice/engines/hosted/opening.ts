/**
 * Owns how a hosted talk begins: the static message of an inbound call, which is heard to its end (nobody is listened to meanwhile); then the
 * agent's first words, on an outbound call after the callee's or when those do not come. A talk that goes on begins with nothing, with the reply that
 * is due, or with the rest of a sentence that was broken off by the loss of its process; in place of an engine that was lost it says first that the line
 * was interrupted. Pure. docs/contract/rest.md "Worker configuration".
 */
import { frameMs } from '../../../model/frame.ts'
import type { EngineConfig } from '../../../model/voice-engine.ts'
import { quietFrames, type TurnTaking } from './turn-taking.ts'

export type OpeningSetting = {
  /** Null: there is none. */
  readonly announcement: string | null
  readonly begins: 'anew' | 'going on' | 'going on, reply due' | 'broken off' | 'in place of another'
  /** Of what was broken off: what was still to be said, as far as it is known. */
  readonly rest?: string
  readonly isInbound: boolean
  /** Frames that the callee has for the first words. */
  readonly firstSpeech: number
}

/** `listening`: the caller speaks, or has spoken, and it is not known yet whether that was speech. */
type Phase = 'unbegun' | 'announcing' | 'waiting' | 'listening' | 'over'

export type Opening = {
  readonly phase: Phase
  /** The frame at which the wait for the caller's first words began; 0 before. */
  readonly since: number
  /** What the provider says instead of the static message, or of it, so far. */
  readonly announced: string
}

/** `asks`: what the model is to do now. */
export type Opened = {
  readonly opening: Opening
  readonly asks:
    { readonly type: 'reply'; readonly hint: string | null } | { readonly type: 'say'; readonly text: string } | null
  /** The static message has been said in other words. */
  readonly isMisread: boolean
}

export const initialOpening: Opening = { phase: 'unbegun', since: 0, announced: '' }

/** A static message of 2,000 characters takes about as long. */
const announcedWithin = 180_000 / frameMs
/** A provider that has not said it by then will not. */
const unsaidFrames = 5_000 / frameMs

export function openingSettingOf({
  direction,
  worker,
  history,
  owesReply,
  bridges,
  brokenOff,
}: EngineConfig): OpeningSetting {
  const { inboundStaticMessageEnabled, inboundStaticMessageText = '', firstSpeechTimeout } = worker
  const text = inboundStaticMessageText.trim()
  const isInbound = direction === 'inbound'
  const due = owesReply ? 'going on, reply due' : 'going on'
  const own = brokenOff ? 'broken off' : due
  const goesOn = bridges ? 'in place of another' : own
  return {
    announcement: isInbound && inboundStaticMessageEnabled && text !== '' ? text : null,
    // Of a provider's session alone nobody has heard anything: what was said is in the history.
    begins: history.length > 0 ? goesOn : 'anew',
    ...(brokenOff && { rest: brokenOff.rest }),
    isInbound,
    firstSpeech: (firstSpeechTimeout * 1000) / frameMs,
  }
}

const bridge =
  'The line was interrupted for a moment, in the midst of the talk. Say so in one short sentence, greet nobody, and go on where the talk was: answer what the caller said last, or say again what you were saying.'

/** Nobody heard that there was anything. */
const goOn = (rest: string): string =>
  `You were in the middle of a sentence: go on right behind your last words, greet nobody, repeat nothing and do not mention it.${rest === '' ? '' : ` You were going to say: ${rest}`}`

const stays = (opening: Opening): Opened => ({ opening, asks: null, isMisread: false })

const replies = (opening: Opening, hint: string | null = null): Opened => ({
  opening: { ...opening, phase: 'over' },
  asks: { type: 'reply', hint },
  isMisread: false,
})

export function openingBegun(setting: OpeningSetting, opening: Opening, now: number): Opened {
  if (setting.begins === 'in place of another') return replies(opening, bridge)
  if (setting.begins === 'broken off') return replies(opening, goOn(setting.rest ?? ''))
  if (setting.begins === 'going on, reply due') return replies(opening)
  if (setting.begins === 'going on') return stays({ ...opening, phase: 'over' })
  if (setting.announcement === null) return afterAnnouncement(setting, opening, now)
  return { ...stays({ ...opening, phase: 'announcing' }), asks: { type: 'say', text: setting.announcement } }
}

function afterAnnouncement({ isInbound }: OpeningSetting, opening: Opening, now: number): Opened {
  const waiting: Opening = { ...opening, phase: 'waiting', since: now }
  return isInbound ? replies(waiting) : stays(waiting)
}

/** The caller has heard, or has lost, all that the agent has said. */
export function openingPlayed(setting: OpeningSetting, opening: Opening, now: number): Opened {
  if (opening.phase !== 'announcing') return stays(opening)
  const isMisread = setting.announcement !== null && lettersOf(opening.announced) !== lettersOf(setting.announcement)
  return { ...afterAnnouncement(setting, opening, now), isMisread }
}

/** Frame `now` has passed. */
export function openingAfterFrame(setting: OpeningSetting, opening: Opening, turns: TurnTaking, now: number): Opened {
  const frames = now - opening.since
  const isLate = frames >= announcedWithin || quietFrames(turns, now) >= unsaidFrames
  if (opening.phase === 'announcing' && isLate) return openingPlayed(setting, opening, now)
  return opening.phase === 'waiting' && frames >= setting.firstSpeech ? replies(opening) : stays(opening)
}

export const greetingBegun = (opening: Opening): Opening =>
  opening.phase === 'waiting' ? { ...opening, phase: 'listening' } : opening

/** What the caller said in the end; empty for no speech. A noise at pick-up is no greeting. */
export const greetingHeard = (opening: Opening, text: string): Opening =>
  opening.phase === 'listening' ? { ...opening, phase: text.trim() === '' ? 'waiting' : 'over' } : opening

/** The model speaks, asked or not. */
export const openingReplied = (opening: Opening): Opening =>
  opening.phase === 'waiting' || opening.phase === 'listening' ? { ...opening, phase: 'over' } : opening

/** `text` of the agent so far. */
export const announcedAs = (opening: Opening, text: string): Opening =>
  opening.phase === 'announcing' ? { ...opening, announced: text } : opening

/** The agent's first words have been asked for, or the caller has spoken. */
export const isOpen = ({ phase }: Opening): boolean => phase === 'over' || phase === 'listening'

/** Nobody is listened to. */
export const isAnnouncing = ({ phase }: Opening): boolean => phase === 'announcing'

const lettersOf = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '')
