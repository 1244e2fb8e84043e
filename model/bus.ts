/** Owns the `Bus` port: what carries audio, commands to running calls and heartbeats between edges and actors. Never truth. */
import type { CallId } from './ids.ts'

export type BusMessage = {
  readonly subject: string
  /** The receiver's own: the sender may reuse its buffer as soon as `publish` returned, unless it gave it away. */
  readonly payload: Uint8Array
  /** Somebody waits for an answer. */
  readonly isRequest: boolean
  /** Answers a request; on a message that was published it does nothing. */
  respond(payload: Uint8Array): void
}

export type Subscription = { close(): void }

/**
 * A subject of one call (`call.<id>.…`) is heard in one process only, and one with members of a queue is taken by those near: where somebody in
 * the process of the sender listens, nobody elsewhere hears it. Every other subject is heard in all processes. A request is answered in the process
 * that asks where somebody there listens.
 */
export type Bus = {
  /**
   * Asynchronous, ordered per publisher, at most once. Subjects are dot-separated tokens. `isGiven`: the sender gives the payload away, and neither
   * reads nor writes it any more; it need not be copied.
   */
  publish(subject: string, payload: Uint8Array, isGiven?: boolean): void
  /** `*` stands for one token, a final `>` for one or more. Of the members of one `queue` only one gets each message. A handler never throws. */
  subscribe(
    pattern: string,
    handler: (message: BusMessage) => void,
    options?: { readonly queue?: string },
  ): Subscription
  /** Throws BusTimeout after `timeout` ms, BusAway where the way to other processes was the reason, BusNoResponders at once when nobody listens. */
  request(subject: string, payload: Uint8Array, options: { readonly timeout: number }): Promise<Uint8Array>
  /** Resolves when all that was published and subscribed so far has reached the bus, and every process that can be reached. */
  flush(): Promise<void>
  close(): Promise<void>
}

/** The bus of a process. */
export type NodeBus = Bus & {
  /**
   * Ms since the way to other processes last showed that it carries; it is tried ten times a second, so that more than a few hundred is no good sign.
   * 0 where there is no other process. Who hears nothing of others judges them only while this is small.
   */
  quietFor(): number
}

export class BusTimeout extends Error {
  override readonly name: string = 'BusTimeout'
}
/** The way to other processes is interrupted, or was meanwhile. Says nothing of who was asked. */
export class BusAway extends BusTimeout {
  override readonly name = 'BusAway'
  /** The request may have reached somebody. */
  readonly wasSent: boolean

  constructor(message: string, options: ErrorOptions & { readonly wasSent: boolean }) {
    super(message, options)
    this.wasSent = options.wasSent
  }
}
export class BusNoResponders extends Error {
  override readonly name = 'BusNoResponders'
}

/** Is it a subject of one call? */
export const isOfOneCall = (subject: string): boolean => subject.startsWith('call.')

/** The subjects of one call. Frames on up and down, JSON on the others. */
export const subjectsOf = (callId: CallId) => ({
  /** Frames of the caller's voice, leg → conversation. */
  up: `call.${callId}.up`,
  /** Frames of the agent's voice, conversation → leg. */
  down: `call.${callId}.down`,
  /** Frames of a supervisor's voice, which is heard in place of the agent's: who carries it → leg. */
  voice: `call.${callId}.voice`,
  /** Frames of both sides, in halves, leg → who carries supervisors' sound: in several processes, so that it is no `call.…`. */
  heard: `heard.${callId}`,
  /** Supervised, actor → the same. */
  supervised: `supervised.${callId}`,
  /** LegCommand requests, actor → leg. */
  legCommand: `call.${callId}.leg.command`,
  /** LegEvent, leg → actor. */
  legEvent: `call.${callId}.leg.event`,
  /** CaptureOrder requests, to the leg. */
  legCapture: `call.${callId}.leg.capture`,
  /** ServerMessage of the signaling socket, actor → gateway. */
  signal: `call.${callId}.signal`,
  /** SessionMoved, gateway → the one that had the browser before. Both listen, so that it is no `call.…`: it would not leave the process. */
  moved: `moved.${callId}`,
})
