/**
 * Owns what is kept of the dialog of a phone call that we placed or answered beside the process that has it: enough for another one to speak to the peer in its
 * place. RFC 3261 §12. Our CSeq is as it was at the beginning: whoever speaks in the place of another leaves a gap that no call fills.
 */
import { z } from 'zod'

/** Of a call that talks: what another process needs to ask the peer over to itself. */
export const TalkFacts = z.object({
  /** Our number in the call. */
  number: z.string(),
  /** `o=` of our last description: a later one differs in its version alone, whoever writes it. RFC 3264 §8. */
  origin: z.object({ sessionId: z.string(), version: z.number().int(), address: z.string() }),
  /** What was agreed on last. */
  audio: z.object({
    codec: z.enum(['opus', 'pcmu', 'pcma', 'g722']),
    payloadType: z.number().int(),
    clockRateHz: z.union([z.literal(8000), z.literal(48000)]),
    telephoneEventPayloadType: z.number().int().nullable(),
    eventClockHz: z.number().int().optional(),
    comfortNoisePayloadType: z.number().int().nullable(),
    packetMs: z.union([z.literal(10), z.literal(20), z.literal(30), z.literal(40), z.literal(60)]),
    silence: z.enum(['continuous', 'sparse']),
  }),
  /** By SRTP. Its keys are not kept: whoever goes on offers new ones. */
  isEncrypted: z.boolean(),
})
export type TalkFacts = z.infer<typeof TalkFacts>

export const DialogFacts = z.object({
  /** As a drachtio-server knows it. */
  name: z.string(),
  callId: z.string(),
  /** From and To of what we send, tags and all. */
  local: z.string(),
  remote: z.string(),
  /** Values of Route, the next hop first. */
  routeSet: z.array(z.string()),
  /** The peer's last Contact. */
  remoteTarget: z.string(),
  /** CSeq of our INVITE; 0: the INVITE was the peer's. */
  localSequence: z.number().int().nonnegative(),
  /** The way the peer's first message came by. `isTranslated`: a NAT stands before it. */
  seen: z.object({
    protocol: z.enum(['udp', 'tcp', 'tls']),
    address: z.string(),
    port: z.number().int(),
    isTranslated: z.boolean(),
  }),
  /** Of an INVITE of ours that has no final answer yet: its Via, by which alone it can be canceled (RFC 3261 §9.1). `remoteTarget` is its Request-URI. */
  early: z.object({ via: z.string() }).optional(),
  /** Absent: the call can go on nowhere else. It is being passed on, or an older version wrote this; what cannot be read is none. */
  talk: TalkFacts.optional().catch(undefined),
})
export type DialogFacts = z.infer<typeof DialogFacts>

/** More requests than a call of the longest length sends within its dialog. */
const gap = 10_000

/** Below that number: so many requests may have asked the peer over before. */
const asking = 20

/** Of the first request in the place of `heirs` processes that had the dialog one after the other. RFC 3261 §12.2.1.1: it may skip numbers. */
export const sequenceOfHeir = ({ localSequence }: DialogFacts, heirs: number): number =>
  Math.min(localSequence + gap * heirs, 2 ** 31 - gap)

/** Of the INVITE by which an heir asks the peer over. What ends the call, should it be refused, is numbered behind it. */
export const askingSequenceOf = (facts: DialogFacts, heirs: number): number => sequenceOfHeir(facts, heirs) - asking
