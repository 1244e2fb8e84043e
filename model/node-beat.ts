/**
 * Owns what a process tells all others ten times a second while it lives, and what it tells when calls become its own. Whoever hears nothing of it any
 * more takes it for dead; a call is taken from it by a higher epoch, so that being wrong about it costs a moment and does nothing twice.
 */
import { z } from 'zod'
import type { NodeId } from './ids.ts'

export const NodeBeat = z.object({
  /** What it does: `actors` run calls. */
  roles: z.array(z.string()).max(16),
  /** Calls that have an actor there. */
  running: z.number().int().nonnegative(),
  /** Phone calls that it would begin at once; 0: it takes none. */
  room: z.number().int().nonnegative(),
  /** It is being stopped: it takes no calls. */
  draining: z.boolean(),
  /** It cannot reach the database and goes on with the calls it has. */
  holds: z.boolean(),
  /** Its last: what it still has is anybody's. */
  leaves: z.literal(true).optional(),
})
export type NodeBeat = z.infer<typeof NodeBeat>

/** A call has a new owner: the node that tells it. */
export const CallTaken = z.object({ callId: z.string(), epoch: z.number().int() })

/** A request: who is asked takes the call from the node that has it, with its consent. */
export const CallOffered = z.object({ callId: z.string(), from: z.string() })

/** Of one node; what is told there is for all processes, also for those beside one that listens itself. */
export const nodeSubjectsOf = (nodeId: NodeId) => ({
  /** NodeBeat. */
  beat: `node.${nodeId}.beat`,
  /** CallTaken. */
  took: `node.${nodeId}.took`,
  /** CallOffered; answered with `{ taken }`. */
  offer: `node.${nodeId}.offer`,
  /** A request without a word: who is alive answers. The bus says at once that nobody listens for a process that has ended. */
  alive: `node.${nodeId}.alive`,
})
export const everyBeat = 'node.*.beat'
export const everyTaken = 'node.*.took'
export const nodeOf = (subject: string): NodeId => subject.split('.')[1] as NodeId
