/**
 * Owns finding the dialog of a message: by the three ids of the wire, or by the one name of the control protocol. Of the forks of one INVITE
 * only one carries the name, the one the app has taken.
 */
import { tagOf } from '../message/address.ts'
import { headerOf } from '../message/header-fields.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import type { Dialog } from './dialog.ts'
import { keyOf } from './dialog-state.ts'

export type Dialogs = {
  add(dialog: Dialog): void
  /** From now on the app means this one. */
  name(dialog: Dialog): void
  named(id: string): Dialog | null
  /** An INVITE of ours may make a dialog of this name, until it is released. */
  reserve(id: string): () => void
  /** By a dialog, or by an INVITE that may make one. */
  isTaken(id: string): boolean
  /** The peer of a dialog that another process had is asked over by this INVITE of ours, until it is released. `hungUp`: it says BYE meanwhile. */
  asksOver(invite: SipRequest, hungUp: () => void): () => void
  /** A request of such a peer came before its answer: what to do when it is a BYE. Null: there is no such peer. */
  askedOver(request: SipRequest): (() => void) | null
  /** Within which dialog a request of the peer came. */
  ofRequest(request: SipRequest): Dialog | null
  /** Within which dialog we answered a request of the peer so. */
  ofAnswer(response: SipResponse): Dialog | null
  /** Within which dialog an answer to a request of ours came. */
  ofResponse(response: SipResponse): Dialog | null
  remove(dialog: Dialog): void
  all(): Dialog[]
  readonly size: () => number
}

export function createDialogs(): Dialogs {
  const byKey = new Map<string, Dialog>()
  const byName = new Map<string, Dialog>()
  /** By how many: one that answers a challenge has the name of the one before. */
  const reserved = new Map<string, number>()
  const asked = new Map<string, () => void>()

  const callIdOf = (message: SipRequest | SipResponse): string => headerOf(message, 'Call-ID') ?? ''
  /** Of what we sent, and of what came. */
  const keyOfOurs = (message: SipRequest | SipResponse): string =>
    keyOf(callIdOf(message), tagOf(message, 'From') ?? '', tagOf(message, 'To') ?? '')
  const keyOfTheirs = (message: SipRequest | SipResponse): string =>
    keyOf(callIdOf(message), tagOf(message, 'To') ?? '', tagOf(message, 'From') ?? '')

  return {
    add: (dialog) => void byKey.set(dialog.key, dialog),
    name: (dialog) => void byName.set(dialog.id, dialog),
    named: (id) => byName.get(id) ?? null,
    reserve(id) {
      reserved.set(id, (reserved.get(id) ?? 0) + 1)
      return () => {
        const left = (reserved.get(id) ?? 1) - 1
        if (left > 0) reserved.set(id, left)
        else reserved.delete(id)
      }
    },
    isTaken: (id) => byName.has(id) || reserved.has(id),
    asksOver(invite, hungUp) {
      const key = keyOfOurs(invite)
      asked.set(key, hungUp)
      return () => void (asked.get(key) === hungUp && asked.delete(key))
    },
    askedOver: (request) => asked.get(keyOfTheirs(request)) ?? null,
    ofRequest: (request) => byKey.get(keyOfTheirs(request)) ?? null,
    ofAnswer: (response) => byKey.get(keyOfTheirs(response)) ?? null,
    ofResponse: (response) => byKey.get(keyOfOurs(response)) ?? null,
    remove(dialog) {
      if (byKey.get(dialog.key) === dialog) byKey.delete(dialog.key)
      if (byName.get(dialog.id) === dialog) byName.delete(dialog.id)
    },
    all: () => [...byKey.values()],
    size: () => byKey.size,
  }
}
