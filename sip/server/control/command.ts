/**
 * Owns what an app may say: `<id>|<command>[|argument…][CRLF <SIP message>]`. The message of an app is a draft: it has the headers that the
 * app cares for, and the server completes it.
 */
import type { SipRequest, SipResponse } from '../message/message.ts'
import { readDraft } from './draft.ts'

export type SipCommand = {
  readonly kind: 'sip'
  /** Of the request that is answered or canceled; empty otherwise. */
  readonly transactionId: string
  readonly dialogId: string
  /** Where a request outside dialogs is sent, whatever its Request-URI says. */
  readonly proxy: string | null
  readonly draft: SipRequest | SipResponse
}

export type Command =
  | { readonly kind: 'authenticate'; readonly secret: string }
  | { readonly kind: 'route' | 'remove_route'; readonly verb: string }
  | { readonly kind: 'ping' }
  | SipCommand
  | { readonly kind: 'impossible'; readonly reason: string }

const carriageReturn = 0x0d

/** Null: no frame of this protocol. */
export function readCommand(frame: Buffer): { readonly id: string; readonly command: Command } | null {
  const end = frame.indexOf(carriageReturn)
  const [id, name, ...parts] = frame.toString('utf8', 0, end === -1 ? frame.length : end).split('|')
  if (!id || !/^[\w-]{1,64}$/.test(id) || name === undefined) return null
  const message = end === -1 ? null : frame.subarray(end + 2)
  return { id, command: commandOf(name, parts, message) }
}

function commandOf(name: string, parts: readonly string[], message: Buffer | null): Command {
  switch (name) {
    case 'authenticate':
      return { kind: 'authenticate', secret: parts[0] ?? '' }
    case 'route':
    case 'remove_route':
      return routeOf(name, parts[0] ?? '')
    case 'ping':
      return { kind: 'ping' }
    case 'sip':
      return sipOf(parts, message)
    case 'proxy':
      return { kind: 'impossible', reason: 'proxying is not supported' }
    default:
      return { kind: 'impossible', reason: 'unknown command' }
  }
}

function routeOf(kind: 'route' | 'remove_route', verb: string): Command {
  // `cdr:attempt` and the like are taken, and nothing is ever told for them.
  if (!/^[a-z]{1,32}(?::[a-z]{1,16})?$/i.test(verb)) return { kind: 'impossible', reason: 'not a verb' }
  return { kind, verb: verb.toLowerCase() }
}

function sipOf(parts: readonly string[], message: Buffer | null): Command {
  const draft = message && readDraft(message)
  if (!draft) return { kind: 'impossible', reason: 'not a SIP message' }
  return { kind: 'sip', transactionId: parts[0] ?? '', dialogId: parts[1] ?? '', proxy: parts[2] || null, draft }
}
