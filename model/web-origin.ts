/**
 * Owns which pages may join a web call: origins (RFC 6454), and patterns that admit one label more in front of a name. A certificate for
 * `*.example.com` covers the same names (RFC 6125 section 6.4.3).
 */
import { z } from 'zod'

const wildcard = '*.'

export const WebOrigin = z
  .string()
  .max(300)
  .refine(isPattern, 'must be an origin like https://app.example.com, or https://*.example.com for one label more')

/** `https://*.example.com` admits `https://app.example.com`; neither the name itself, nor two labels, nor another scheme or port. */
export function admitsOrigin(patterns: readonly string[], origin: string): boolean {
  if (origin.includes('*')) return false
  return patterns.includes(origin) || (isOrigin(origin) && patterns.some((pattern) => covers(pattern, origin)))
}

/** Lists that were stored before patterns were understood may hold others: those cover nothing. */
function covers(pattern: string, origin: string): boolean {
  if (!pattern.includes('*') || !isPattern(pattern)) return false
  const [asked, allowed] = [new URL(origin), new URL(pattern)]
  const [label = '', ...rest] = asked.host.split('.')
  return label !== '' && asked.protocol === allowed.protocol && `${wildcard}${rest.join('.')}` === allowed.host
}

/** A star stands for the whole first label, in front of a name of two labels or more, or of this machine. */
function isPattern(text: string): boolean {
  if (!isOrigin(text)) return false
  const { hostname } = new URL(text)
  return !text.includes('*') || /^\*\.(?:[^.*]+(?:\.[^.*]+)+|localhost)$/.test(hostname)
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}
