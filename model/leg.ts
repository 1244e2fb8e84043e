/**
 * Owns what an actor and a leg say to each other over the bus. A leg is one media end of a call: it knows transport, codec and
 * timing, and no business rule; it outlives the actor. Commands carry the actor's epoch; a leg refuses an older one (fencing).
 */
import { z } from 'zod'
import { LegQuality } from './call-quality.ts'
import { Json } from './json.ts'
import { EndedBy, FailedReason, type Outcome } from './outcome.ts'

const Format = z.object({
  encoding: z.enum(['pcm16', 'pcmu', 'pcma']),
  rateHz: z.union([z.literal(8000), z.literal(16000), z.literal(24000), z.literal(48000)]),
})

export const RecordingMode = z.enum(['mixed', 'split'])
export type RecordingMode = z.infer<typeof RecordingMode>

/** What of a call goes into its recording; what does not is silence there, so that the rest keeps its place. */
export const RecordedParts = z.enum(['both', 'agent', 'none'])
export type RecordedParts = z.infer<typeof RecordedParts>

/** One utterance of the agent, as its actor knows it: what whoever takes the call over cannot know of what is being played. */
export const AgentWords = z.object({
  /** As far as it is known. */
  text: z.string().max(10_000),
  /** Ms since the call was answered. */
  from: z.number().int(),
  firstSeq: z.number().int(),
  /** Null: not all of its sound has been sent. */
  frames: z.number().int().nonnegative().nullable(),
  /** Of the engine that says it. Absent: as it was told with the one before. */
  memory: Json.optional(),
  /** They are the last words of the call. */
  ends: z.object({ nextAction: z.string().nullable() }).optional(),
})
export type AgentWords = z.infer<typeof AgentWords>

/** The same of an actor that is gone: so many frames of it were played, or will be. */
const LeftWords = AgentWords.extend({
  sent: z.number().int().nonnegative(),
  /** Its actor had silenced it. */
  isCut: z.boolean(),
})
export type LeftWords = z.infer<typeof LeftWords>

const StartedRecording = z.object({
  key: z.string(),
  mode: RecordingMode,
  parts: RecordedParts.optional(),
  /** Now, in ms since the answer: what a further leg of the call records begins there. Absent: a further leg records nothing. */
  from: z.number().int().nonnegative().optional(),
})
export type StartedRecording = z.infer<typeof StartedRecording>

/**
 * What of `up`, as the actor of this epoch counts, needs to be heard by nobody again: sound up to `seq`; of keys, which become turns in their own time,
 * those up to `upTo` but the open ones. Without `keys`, as older versions tell it, keys are as the sound.
 */
export const SettledLine = z.object({
  epoch: z.number().int(),
  seq: z.number().int(),
  keys: z.object({ upTo: z.number().int(), open: z.array(z.number().int()).max(64) }).optional(),
})
export type SettledLine = z.infer<typeof SettledLine>

export const LegCommand = z.discriminatedUnion('type', [
  /** Frames flow from here on, up and down in one format of each list: one that the line has untouched, else the first. Recording starts when asked for. */
  z.object({
    type: z.literal('start'),
    epoch: z.number().int(),
    hears: z.array(Format).min(1).max(8),
    speaks: z.array(Format).min(1).max(8),
    /** Null: from here on nothing is recorded. `parts` absent: both. */
    recording: StartedRecording.nullable(),
    /** Of the actor. In another one than the leg's the leg keeps what it hears, until it is `settled`. Absent: nothing is kept, and `listens` is not said. */
    node: z.string().optional(),
    /** Of a former actor's words what is queued is played to its end, where this one speaks the same format; its frames are numbered on behind them. */
    goesOn: z.literal(true).optional(),
    /** What the caller presses and types has its number among the frames of `up`. Absent: it is told at once, and once. */
    numbersKeys: z.literal(true).optional(),
    /** What an actor before had written down: it may have been gone before it could tell the leg. One that the leg did not listen to last counts for nothing. */
    settled: SettledLine.optional(),
  }),
  /** What the agent is saying from here on; once more when more of it is known. */
  z.object({ type: z.literal('says'), epoch: z.number().int(), words: AgentWords }),
  /** The actor listens to `up`: what has waited for that is sent. */
  z.object({ type: z.literal('listens'), epoch: z.number().int() }),
  /** Of `up` what is behind this one has been lost on the way, and perhaps some of `down`: what is kept of it comes again, before the answer. */
  z.object({ type: z.literal('catch_up'), epoch: z.number().int(), heard: z.number().int() }),
  SettledLine.extend({ type: z.literal('settled') }),
  /** The actor is about to leave: what is said from here on is for the next one. `keys`: what it has heard of them and nobody has told yet is, too. */
  z.object({
    type: z.literal('keep'),
    epoch: z.number().int(),
    keys: z
      .array(z.lazy(() => KeyEvent))
      .max(64)
      .optional(),
  }),
  /** Asked again, it changes nothing; without a recording neither. */
  z.object({ type: z.literal('record'), epoch: z.number().int(), parts: RecordedParts }),
  /** Both sides are told to who listens; `voice`: what comes of a supervisor is played in place of what the agent says. Told again, it changes nothing. */
  z.object({ type: z.literal('supervise'), epoch: z.number().int(), listens: z.boolean(), voice: z.boolean() }),
  /** Forgets what was not played yet. */
  z.object({ type: z.literal('flush'), epoch: z.number().int() }),
  /** Closes the media end and completes the recording. `reason` is the terminal status the call has reached. */
  z.object({ type: z.literal('close'), epoch: z.number().int(), reason: z.string() }),
  /** Takes an inbound call that rings; `connected` follows. Asked again, it changes nothing. */
  z.object({ type: z.literal('answer'), epoch: z.number().int() }),
  /** Presses keys, one after the other, instead of what the agent says meanwhile. */
  z.object({ type: z.literal('send_dtmf'), epoch: z.number().int(), digits: z.string().regex(/^[0-9A-D*#]{1,32}$/) }),
  /**
   * Passes the caller on (RFC 3515; before the answer a 302). Replied when the other side has said whether it will try; what became of it
   * comes as `transferred` or `transfer_failed`. `to` is a number as the trunk dials it, without prefix.
   */
  z.object({ type: z.literal('transfer'), epoch: z.number().int(), to: z.string() }),
  /** Is anybody there? Asked by an actor that took the call over. */
  z.object({ type: z.literal('ping'), epoch: z.number().int() }),
])
export type LegCommand = z.infer<typeof LegCommand>

/**
 * Ms since the last media of the other side, or since the other side ended the call. An age and no time, because the clocks of two nodes
 * differ. Legs of before it was told have none.
 */
const silentFor = z.number().nonnegative()

/** Of the end of a call, as far as the leg knows: by whom, and the SIP status or Q.850 cause that the other side gave (`Q.850 16`). */
const end = {
  endedBy: EndedBy.optional(),
  endCause: z.string().max(100).nullable().optional(),
  silentFor: silentFor.optional(),
}

export const LegReply = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('started'),
    hears: Format,
    speaks: Format,
    /** Frames come when the actor `listens`: first so many that were kept, as fast as they can. */
    waits: z.object({ kept: z.number().int().nonnegative() }).optional(),
    /** What the actor hears is kept, until it is `settled`. */
    keeps: z.literal(true).optional(),
    /** Of a former actor: its newest words, oldest first, and the number of the next frame of `down`. */
    left: z
      .object({ words: z.array(LeftWords), nextSeq: z.number().int(), lastPlayedSeq: z.number().int() })
      .optional(),
  }),
  /** `lastPlayedSeq`: the last frame of `down` that was sent to the caller, -1 when none was. */
  z.object({ type: z.literal('flushed'), lastPlayedSeq: z.number().int() }),
  /**
   * Of `down`: the last frame that was played, and the last before which none is missing; those behind it are to be sent again. -1: none. `first`: the
   * oldest of `up` behind what was heard that there still is, or will be. Absent: the leg does not tell, and what has not come is gone.
   */
  z.object({
    type: z.literal('caught_up'),
    played: z.number().int(),
    taken: z.number().int(),
    first: z.number().int().optional(),
  }),
  /** `quality`: absent when no sound could flow. One that cannot be read is none, and costs nobody the recording. */
  z.object({
    type: z.literal('closed'),
    recordedMs: z.number().nullable(),
    quality: LegQuality.optional().catch(undefined),
    silentFor: silentFor.optional(),
    /** The disk did not take all of the recording. */
    recordingIncomplete: z.literal(true).optional().catch(undefined),
  }),
  /** `ended`: what the leg told last, when it is over. */
  z.object({
    type: z.literal('here'),
    connected: z.boolean(),
    ended: z.lazy(() => LegEvent).nullable(),
    /** As `ringing` told it, while it rings. */
    ringing: z.string().optional(),
    /** The process of the leg, where that is known. */
    node: z.string().optional(),
    /** The epoch of the actor that has started it. Absent: none has, or the leg is of before it was told. */
    startedBy: z.number().int().optional(),
    /** Frames of the caller's that whoever starts hears again. */
    kept: z.number().int().nonnegative().optional(),
    /** Another leg of the call was before it, and what this one records is a part of its own. Absent: it is the first, or of before there were parts. */
    isFurther: z.literal(true).optional(),
  }),
  /** Keys are queued, the transfer is under way, the call is being answered, the recording does as it was told. */
  z.object({ type: z.literal('accepted') }),
  /** The command is of an actor that has been taken over, or makes no sense now; `details` says which. */
  z.object({ type: z.literal('refused'), details: z.string() }),
])
export type LegReply = z.infer<typeof LegReply>

/** What is left of a leg that is closed. */
export type ClosedLeg = Omit<Extract<LegReply, { readonly type: 'closed' }>, 'type'>

/** An ending as it crosses the bus; see outcome.ts. */
const EndOfDialing: z.ZodType<Outcome> = z.union([
  z.object({ status: z.enum(['completed', 'voicemail', 'no_answer', 'busy']) }),
  z.object({ status: z.enum(['canceled', 'failed']), reason: FailedReason.nullable() }),
])

/** Characters that a caller can type at once. */
export const maxTypedText = 1_000

/** Its number among the frames of `up`. `hidden`: nothing was recorded when it was pressed. */
const place = {
  line: z.object({ epoch: z.number().int(), seq: z.number().int(), hidden: z.literal(true).optional() }).optional(),
}

const Digit = z.object({ type: z.literal('dtmf'), digit: z.string(), ...place })
/** Of a browser: words for the agent that were typed. */
const Typed = z.object({ type: z.literal('typed'), text: z.string().min(1).max(maxTypedText), ...place })

/** What a caller does without a sound. */
export const KeyEvent = z.discriminatedUnion('type', [Digit, Typed])
export type KeyEvent = z.infer<typeof KeyEvent>

export const LegEvent = z.discriminatedUnion('type', [
  /** The other side rings. */
  z.object({ type: z.literal('ringing'), providerStatus: z.string() }),
  /** Nobody answered; the leg is over. */
  z.object({ type: z.literal('dial_failed'), outcome: EndOfDialing, providerStatus: z.string().nullable(), ...end }),
  /** Media can flow both ways. */
  z.object({ type: z.literal('connected'), providerStatus: z.string() }),
  /** Gone for good: the caller hung up, the network failed or no media came for too long. */
  z.object({
    type: z.literal('disconnected'),
    cause: z.enum(['hung_up', 'media_lost', 'failed']),
    details: z.string(),
    ...end,
  }),
  Digit,
  Typed,
  /** The caller has been passed on; the leg ends by itself. */
  z.object({ type: z.literal('transferred'), providerStatus: z.string(), ...end }),
  /** The caller is still here. */
  z.object({ type: z.literal('transfer_failed'), providerStatus: z.string() }),
  /** The first frame after a pause of the agent has been sent to the caller. */
  z.object({ type: z.literal('sounding'), seq: z.number().int() }),
  /** Nothing comes of the supervisor who is to speak. */
  z.object({ type: z.literal('voice_lost') }),
  /** All that was sent down has been played; `lastPlayedSeq` as in `flushed`. */
  z.object({ type: z.literal('drained'), lastPlayedSeq: z.number().int() }),
])
export type LegEvent = z.infer<typeof LegEvent>

export const isKeyEvent = (event: LegEvent): event is KeyEvent => event.type === 'dtmf' || event.type === 'typed'
