/**
 * Owns where the peer of a dialog was seen, and whether its own addresses mean anything here: behind a NAT there are networks like ours,
 * with other machines in them. RFC 3581 §1.
 */
import { isIP } from 'node:net'
import { isLoopback } from '../../../net/addresses.ts'
import { inSamePrivateNetwork, isLocal } from '../../../net/special-networks.ts'
import { addressOf } from '../message/address.ts'
import type { SipRequest, SipResponse } from '../message/message.ts'
import { readSipUri } from '../message/uri.ts'
import { topViaOf } from '../message/via.ts'
import { destinationOf } from './resolve-targets.ts'
import type { Flow, Target } from './transport.ts'

/** `flow`: the last way something came or went. */
export type SeenPeer = { readonly flow: Flow; readonly isTranslated: boolean }

/** A NAT stands before who called: it is not where it says. Two of one private network see each other as they are. */
export function isTranslatedCaller(invite: SipRequest, { remote: { address } }: Flow): boolean {
  const sentBy = topViaOf(invite)?.host ?? ''
  if (isIP(sentBy) !== 0 && sentBy !== address) return true
  const contact = hostOfContact(invite)
  return (
    isLocal(contact) && contact !== address && !inSamePrivateNetwork(contact, address) && !areHere(contact, address)
  )
}

/** Before who was called: what it says of a private network is true for us where it is in one as well. */
export const isTranslatedCallee = (response: SipResponse, { remote }: Flow): boolean =>
  isLocal(hostOfContact(response)) && !isLocal(remote.address)

/** The address leads to somebody else from here. */
export const isElsewhere = ({ remote }: Target, { flow, isTranslated }: SeenPeer): boolean =>
  isTranslated && remote.address !== flow.remote.address && isLocal(remote.address)

const areHere = (one: string, other: string): boolean => isLoopback(one) && isLoopback(other)

function hostOfContact(message: SipRequest | SipResponse): string {
  const uri = readSipUri(addressOf(message, 'Contact')?.uri ?? '')
  return uri ? destinationOf(uri).host : ''
}
