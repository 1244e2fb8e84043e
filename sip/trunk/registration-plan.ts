/** Owns when a trunk registers next: after an answer, and after none. RFC 3261 §10.2, §10.3; RFC 5626 §4.5 for the growing pause. */
import { jittered } from '../../model/retry.ts'
import { addressesOf } from '../server/message/address.ts'
import { leadingNumber } from '../server/message/header-text.ts'
import { readSipUri } from '../server/message/uri.ts'
import type { MessageIn } from '../stack-types.ts'

/** Seconds asked for. */
export const wantedSeconds = 600
const maxSeconds = 86_400
/** Ms. */
const minRefresh = 15_000

const fieldsOf = (message: MessageIn, name: string) => ({
  headers: [{ name, value: message.get(name) ?? '' }],
})

/**
 * Seconds that the registrar keeps our contact: it lists all of the account, and ours among them with `expires`. RFC 3261 §10.3, step 8.
 * Registrars write it anew, so it is known by its address; where none is known the shortest time is safe.
 */
export function grantedSeconds(answer: MessageIn, sent: MessageIn): number {
  const ours = addressesOf(fieldsOf(sent, 'Contact'), 'Contact')[0]?.uri
  const listed = addressesOf(fieldsOf(answer, 'Contact'), 'Contact')
  const isOurs = sameness.find((isSame) => listed.some(({ uri }) => isSame(uri, ours ?? '')))
  const meant = isOurs ? listed.filter(({ uri }) => isOurs(uri, ours ?? '')) : listed
  const named = meant.flatMap(({ params }) => leadingNumber(params.get('expires')) ?? [])
  const granted = named.length > 0 ? Math.min(...named) : (leadingNumber(answer.get('Expires')) ?? wantedSeconds)
  return Math.min(granted, maxSeconds)
}

const placeOf = (uri: string): string | null => {
  const read = readSipUri(uri)
  return read && `${read.host.toLowerCase()} ${read.port ?? 5060}`
}

/** To the letter, by host and port, by host. */
const sameness: readonly ((one: string, other: string) => boolean)[] = [
  (one, other) => one === other,
  (one, other) => placeOf(one) !== null && placeOf(one) === placeOf(other),
  (one, other) => readSipUri(one)?.host.toLowerCase() === readSipUri(other)?.host.toLowerCase(),
]

/** Ms until the next REGISTER: well before the end, so that a lost one can be repeated, and not with all the others. */
export function refreshAfter(seconds: number, random: () => number): number {
  const life = seconds * 1000
  return Math.max(minRefresh, life * (0.7 + 0.15 * random()))
}

/**
 * `refused`: an answer that another try does not change, from 30 s doubling to 30 min, so that a wrong password does not get the address
 * blocked. `silence`: the registrar or the way to it is down; it is to be noticed soon when it is back.
 */
export function retryAfter(
  kind: 'refused' | 'silence',
  {
    failures,
    asked,
    random,
  }: { readonly failures: number; readonly asked: number | null; readonly random: () => number },
): number {
  const [first, most] = kind === 'refused' ? [30_000, 1_800_000] : [5_000, 120_000]
  const pause = jittered(Math.min(most, first * 2 ** Math.min(failures - 1, 16)), random())
  return asked === null ? pause : Math.max(pause, Math.min(asked * 1000, most))
}

/** 423: the registrar wants longer ones. Null: it does not say how long, or more than anybody should. RFC 3261 §10.2.8. */
export function longerSeconds(answer: MessageIn, asked: number): number | null {
  const least = leadingNumber(answer.get('Min-Expires'))
  return least !== null && least > asked && least <= maxSeconds ? least : null
}
