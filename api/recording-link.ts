/**
 * Owns links to recordings: whoever has one may listen until it expires, no key asked. The signature covers the recording and the time,
 * so neither can be exchanged. docs/contract/rest.md "Recordings".
 */
import { createHmac, timingSafeEqual, type KeyObject } from 'node:crypto'
import type { AccountId, CallId } from '../model/ids.ts'
import type { SoundForm } from '../model/recording-store.ts'

export const recordingsPath = '/v1/recordings'
export const linkLifetime = 15 * 60_000

/** `expires` is ms since the epoch. */
export function recordingLinkOf(
  key: KeyObject,
  { accountId, callId, form = 'wav' }: { accountId: AccountId; callId: CallId; form?: SoundForm },
  expires: number,
): string {
  const path = `${recordingsPath}/${accountId}/${callId}.${form}`
  return `${path}?expires=${expires}&signature=${signatureOf(key, path, String(expires)).toString('base64url')}`
}

export function linkIsGood(
  key: KeyObject,
  link: { readonly path: string; readonly expires: string; readonly signature: string },
  now: number,
): boolean {
  const given = Buffer.from(link.signature, 'base64url')
  const right = signatureOf(key, link.path, link.expires)
  if (given.length !== right.length || !timingSafeEqual(given, right)) return false
  return Number(link.expires) > now
}

const signatureOf = (key: KeyObject, path: string, expires: string): Buffer =>
  createHmac('sha256', key).update(`${path}\n${expires}`).digest()
