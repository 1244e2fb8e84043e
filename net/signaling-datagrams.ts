/** Owns how signaling stands in a capture: each message as if UDP had carried it, whatever did. Pure. */
import { withoutBrackets } from './addresses.ts'
import { wordsOf } from './address-words.ts'
import type { Datagram } from './pcap.ts'

export type SignalingMessage = {
  /** ISO 8601. */
  readonly at: string
  readonly direction: 'in' | 'out'
  readonly local: string
  readonly remote: string
  readonly text: string
}

export function signalingDatagramOf({ at, direction, local, remote, text }: SignalingMessage): Datagram {
  const theirs = placeIn(remote)
  const ours = reachable(placeIn(local), theirs.address)
  const [from, to] = direction === 'in' ? [theirs, ours] : [ours, theirs]
  return { at: Date.parse(at), from, to, payload: new TextEncoder().encode(text) }
}

type Place = Datagram['from']

function placeIn(place: string): Place {
  const colon = place.lastIndexOf(':')
  return { address: withoutBrackets(place.slice(0, colon)), port: Number(place.slice(colon + 1)) }
}

/** A name, by which a browser asked, is no address: the unspecified one stands for it. */
const reachable = (place: Place, beside: string): Place =>
  wordsOf(place.address) ? place : { ...place, address: beside.includes(':') ? '::' : '0.0.0.0' }
