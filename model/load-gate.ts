/**
 * Owns the port by which whoever begins a call asks whether this node has room for one more, and what they are told when it has none. What runs
 * already is never asked for: no message of a running call, no socket that comes back to its process, no call that a dead node left behind.
 */
import { Problem } from './problem.ts'

/** What begins: a session that a browser may join, a browser that joins, a telephone call of either direction. */
export type Beginning = 'web_session' | 'web_call' | 'phone_call'

export const loadReasons = [
  /** Running calls are sent their sound late. */
  'late',
  /** The thread that carries the calls has hardly any time left. */
  'busy',
  /** Steps of calls are written too slowly. */
  'commits',
  /** The database has not answered for seconds. */
  'database',
  /** Calls begin as fast as running ones can bear; this was one more. */
  'pace',
  /** Another process that the call needs has no room for it, or is not heard. */
  'nodes',
] as const
export type LoadReason = (typeof loadReasons)[number]

export type LoadRefusal = {
  readonly reason: LoadReason
  /** For people. */
  readonly details: string
  readonly retryAfterSeconds: number
}

export type LoadGate = {
  /** Null: it may begin. Takes nothing: asked before anything is known of who asks. A refusal is counted. */
  refusal(beginning: Beginning): LoadRefusal | null
  /** The same, and what begins is counted with its cost. */
  admit(beginning: Beginning): LoadRefusal | null
  /** Begins what had been promised: refused only while nothing begins at all. */
  admitPromised(beginning: Beginning): LoadRefusal | null
  /** Of a call that only waits for its turn: refused while it could not be written. */
  writing(): LoadRefusal | null
  /** What was admitted did not begin. */
  giveBack(beginning: Beginning): void
  /** How many may begin at once; those that do are told by `began`. Nothing is refused by it. */
  room(beginning: Beginning): number
  began(beginning: Beginning, count: number): void
  /** `limited`: not as fast as they come. */
  newCalls(): 'taken' | 'limited' | 'refused'
}

/** A call is being set up. */
export type SetUpTurn = {
  /** It is set up, or will not be. Idempotent. */
  done(): void
}

/** Calls that are set up at a time, however many come at once: the others wait for their turn. */
export type SetUps = {
  /** A refusal, at once or after a while: too many wait. */
  turn(): Promise<SetUpTurn | LoadRefusal>
  /** The same of what has waited in a queue of its own and may go on waiting. */
  inTurn<Value>(work: () => Promise<Value>): Promise<Value>
}

const details: Readonly<Record<LoadReason, string>> = {
  late: 'This node is overloaded: the sound of running calls is late.',
  busy: 'This node is overloaded: running calls take all of its time.',
  commits: 'This node is overloaded: the database writes too slowly.',
  database: 'The database does not answer.',
  pace: 'Calls begin as fast as this node can bear, and this was one more.',
  nodes: 'No other node that the call needs has room for it.',
}

/** Who may try another node soon does; a database that is away takes longer to come back. */
const retryAfter: Readonly<Record<LoadReason, number>> = {
  late: 5,
  busy: 5,
  commits: 5,
  database: 10,
  pace: 2,
  nodes: 5,
}

export const loadRefusalOf = (reason: LoadReason): LoadRefusal => ({
  reason,
  details: details[reason],
  retryAfterSeconds: retryAfter[reason],
})

/** As REST and the signaling socket tell it: 503 with Retry-After. */
export const unavailableOf = ({ details: words, retryAfterSeconds }: LoadRefusal): Problem =>
  new Problem('SERVICE_UNAVAILABLE', words, null, { retryAfterSeconds })

/** The same for a web call; 400 has the type where the account or the worker is full, which is the caller's own affair. */
export const loadProblemOf = (refusal: LoadRefusal): Problem => {
  const { reason, details: words, retryAfterSeconds } = refusal
  if (reason === 'database') return unavailableOf(refusal)
  return new Problem('WEB_CALL_CAPACITY_EXCEEDED', words, null, { status: 503, retryAfterSeconds })
}

/** Lets everything begin. */
export const openGate: LoadGate = {
  refusal: () => null,
  admit: () => null,
  admitPromised: () => null,
  writing: () => null,
  giveBack: () => undefined,
  room: () => Infinity,
  began: () => undefined,
  newCalls: () => 'taken',
}
