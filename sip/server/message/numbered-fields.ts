/** Owns the small header fields that count and time things: CSeq, RSeq, RAck, Session-Expires, Reason. */
import { headerOf, valuesOf } from './header-fields.ts'
import { isToken, leadingNumber, readParams, splitAt, unquoted } from './header-text.ts'
import type { HeaderField } from './message.ts'

type Fields = { readonly headers: readonly HeaderField[] }

/** RFC 3261 §8.1.1.5: below 2**31. */
const maxSequence = 2 ** 31 - 1

export type CSeq = { readonly number: number; readonly method: string }

export function readCSeq(value: string): CSeq | null {
  const [, digits = '', method = ''] = /^(\d{1,20})\s+(\S+)$/.exec(value) ?? []
  const number = Number(digits)
  return digits !== '' && number <= maxSequence && isToken(method) ? { number, method } : null
}

export function cseqOf(message: Fields): CSeq | null {
  const value = headerOf(message, 'CSeq')
  return value === null ? null : readCSeq(value)
}

/** RFC 3262 §7.1: 1 … 2**32 - 1. */
export function rseqOf(message: Fields): number | null {
  const value = headerOf(message, 'RSeq') ?? ''
  return /^\d{1,10}$/.test(value) && Number(value) > 0 && Number(value) <= 0xffff_ffff ? Number(value) : null
}

/** RFC 3262 §7.2: which provisional response of which request is acknowledged. */
export type RAck = { readonly rseq: number; readonly cseq: CSeq }

export function rackOf(message: Fields): RAck | null {
  const [, digits, rest = ''] = /^(\d{1,10})\s+(.+)$/.exec(headerOf(message, 'RAck') ?? '') ?? []
  const cseq = readCSeq(rest)
  return digits && cseq ? { rseq: Number(digits), cseq } : null
}

/** RFC 4028 §4: seconds, and who refreshes. */
export type SessionExpires = { readonly seconds: number; readonly refresher: 'uac' | 'uas' | null }

export function sessionExpiresOf(message: Fields): SessionExpires | null {
  const value = headerOf(message, 'Session-Expires')
  const seconds = leadingNumber(value)
  if (value === null || seconds === null) return null
  const semicolon = value.indexOf(';')
  const refresher = semicolon === -1 ? null : readParams(value.slice(semicolon))?.get('refresher')?.toLowerCase()
  return { seconds, refresher: refresher === 'uac' || refresher === 'uas' ? refresher : null }
}

/** Seconds of Min-SE, Expires, Min-Expires, Retry-After. A number too large is the largest. RFC 3261 §20.19. */
export const secondsOf = (message: Fields, name: 'Min-SE' | 'Expires' | 'Min-Expires' | 'Retry-After'): number | null =>
  leadingNumber(headerOf(message, name))

/** RFC 3326: why a call ended; `Q.850` causes above all. */
export type Reason = { readonly protocol: string; readonly cause: number | null; readonly text: string | null }

export const reasonsOf = (message: Fields): Reason[] =>
  valuesOf(message, 'Reason').flatMap((value) => {
    const [protocol = '', ...rest] = splitAt(value, ';') ?? []
    const params = readParams(rest.join(';'))
    if (!isToken(protocol) || !params) return []
    return [{ protocol, cause: leadingNumber(params.get('cause')), text: textOf(params.get('text')) }]
  })

const textOf = (value: string | null | undefined): string | null =>
  value === null || value === undefined ? null : unquoted(value)
