/**
 * Owns what is kept of the dialog of a phone call that we placed or answered beside the process that has it: enough for another one to speak to the peer in its
 * place. RFC 3261 §12. Our CSeq is as it was at the beginning: whoever speaks in the place of another leaves a gap that no call fills.
 */
import { z } from 'zod'

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
})
export type DialogFacts = z.infer<typeof DialogFacts>

/** More requests than a call of the longest length sends within its dialog. */
const gap = 10_000

/** Of the first request in the place of `heirs` processes that had the dialog one after the other. RFC 3261 §12.2.1.1: it may skip numbers. */
export const sequenceOfHeir = ({ localSequence }: DialogFacts, heirs: number): number =>
  Math.min(localSequence + gap * heirs, 2 ** 31 - gap)
