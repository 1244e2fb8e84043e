/** Owns how a delivery that came in reads: a line for people with what it says below, or JSON on one line for machines. */
import { printable } from './printable.ts'

export type Arrival = {
  /** ISO 8601. */
  readonly at: string
  readonly type: string
  readonly eventId: string
  readonly attempt: number
  readonly callId: string | null
  readonly verified: boolean
  /** Why it is not verified; null when it is. */
  readonly reason: string | null
  readonly duplicate: boolean
  /** What it was answered with. */
  readonly status: number
  /** Null when it was refused. */
  readonly data: unknown
}

/** A long call has more to tell than a terminal should show. */
const shownCharacters = 20_000

export function arrivalTextOf(arrival: Arrival): string {
  const { at, type, eventId, attempt, callId, verified, reason, duplicate, status, data } = arrival
  const parts = [
    at.slice(11, 23),
    type || '(no type)',
    eventId || '(no id)',
    `attempt ${attempt || '?'}`,
    `call ${callId ?? '?'}`,
    verified ? 'verified' : reason,
    ...(duplicate ? ['DUPLICATE'] : []),
    `→ ${status}`,
  ]
  const line = printable(parts.join('  '))
  return data === null ? line : `${line}\n${shown(printable(JSON.stringify(data, null, 2)))}`
}

export const arrivalJsonOf = (arrival: Arrival): string => printable(JSON.stringify(arrival))

function shown(text: string): string {
  const rest = text.length - shownCharacters
  return rest <= 0 ? text : `${text.slice(0, shownCharacters)}\n… and ${rest} characters more (--json shows all)`
}
