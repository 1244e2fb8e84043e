/**
 * Owns which call an address belongs to, of all calls that share a socket. A check of ICE is signed and says nothing of where it was sent from
 * (RFC 8445 §19.4): whoever has a call of their own may send one under the address of somebody else. So a call keeps its address while it is
 * alive there, and only a better proof takes it. Pure: time is an argument.
 */

/**
 * How an address was claimed: by a check for a call whose association is up elsewhere (`hint`), by one for a call that has none yet
 * (`checked`), or by what only the client could have made (`authentic`: DTLS, SRTP, SRTCP).
 */
export type Claim = 'hint' | 'checked' | 'authentic'

export type AddressBook<Owner> = {
  ownerOf(key: string): { readonly owner: Owner; readonly claim: Claim } | undefined
  /** False: it belongs to another call. The owner's own claims keep it alive. */
  claim(key: string, owner: Owner, claim: Claim, at: number): boolean
  /** Nothing when it belongs to another. */
  release(key: string, owner: Owner): void
}

type Entry<Owner> = { readonly owner: Owner; claim: Claim; at: number }

const ranks = { hint: 0, checked: 1, authentic: 2 } as const
/** Ms without a further claim. A client checks every few seconds; its consent ends after 30 s (RFC 7675 §5.1). */
const livesFor = { hint: 5_000, checked: 5_000, authentic: 30_000 } as const

export function createAddressBook<Owner>(): AddressBook<Owner> {
  const entries = new Map<string, Entry<Owner>>()
  return {
    ownerOf: (key) => entries.get(key),
    claim(key, owner, claim, at) {
      const entry = entries.get(key)
      if (!entry || (entry.owner !== owner && mayTake(entry, claim, at))) {
        entries.set(key, { owner, claim, at })
        return true
      }
      if (entry.owner !== owner) return false
      entry.at = at
      if (ranks[claim] > ranks[entry.claim]) entry.claim = claim
      return true
    },
    release(key, owner) {
      if (entries.get(key)?.owner === owner) entries.delete(key)
    },
  }
}

const mayTake = (entry: Pick<Entry<unknown>, 'claim' | 'at'>, claim: Claim, at: number): boolean =>
  ranks[claim] > ranks[entry.claim] || at - entry.at > livesFor[entry.claim]
