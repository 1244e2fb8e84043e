/**
 * Owns to whom the passwords of trunks are proved: the realms that took them first at a host, and no other after that, because who asks under
 * another name may be anybody who wants a proof to guess the password by. RFC 7616 §5.8. What was learned is kept by the telephony port.
 */
import type { Log } from '../model/log.ts'
import type { Telephony, TrunkAccess } from '../model/telephony.ts'
import type { TrunkId } from '../model/ids.ts'
import type { RealmPin } from './stack-types.ts'

export type RealmPins = {
  /** As the trunk was read just now: what is not there any more is forgotten. */
  adopt(trunk: Pick<TrunkAccess, 'id' | 'realms'>): void
  pinOf(trunk: Pick<TrunkAccess, 'id' | 'name'>, host: string): RealmPin
  /** What was learned until now has been written down, as far as it could be. */
  written(): Promise<void>
}

type Deps = {
  readonly telephony: Pick<Telephony, 'learnRealm'>
  readonly log: Log
  /** Whoever asks gets the password, and is learned besides the others that took it: an operator is watching. */
  readonly acceptsAny?: boolean
}

type Known = {
  realms: readonly string[]
  refused: string | null
  /** Not written down yet. */
  isNew: boolean
}

export function createRealmPins({ telephony, log, acceptsAny = false }: Deps): RealmPins {
  const trunks = new Map<TrunkId, Map<string, Known>>()
  const writing = new Set<Promise<void>>()
  const placesOf = (id: TrunkId): Map<string, Known> => {
    const places = trunks.get(id) ?? new Map<string, Known>()
    trunks.set(id, places)
    return places
  }
  const keep = async (trunkId: TrunkId, host: string, known: Known): Promise<void> => {
    try {
      await telephony.learnRealm(trunkId, { host, proved: known.realms, refused: known.refused })
      known.isNew = false
    } catch (error) {
      log.warn('the realm of a trunk could not be written down', { trunkId, host, error })
    }
  }

  return {
    async written() {
      await Promise.all(writing)
    },
    adopt({ id, realms }) {
      if (!realms) return
      const places = placesOf(id)
      for (const [host, known] of places) if (!known.isNew && !realms[host]) places.delete(host)
      for (const [host, proved] of Object.entries(realms)) {
        const known = places.get(host)
        places.set(host, { realms: proved, refused: known?.refused ?? null, isNew: false })
      }
      if (places.size === 0) trunks.delete(id)
    },
    pinOf({ id, name }, given) {
      const host = given.toLowerCase()
      const known = (): Known => trunks.get(id)?.get(host) ?? { realms: [], refused: null, isNew: true }
      const become = (next: Omit<Known, 'isNew'>): void => {
        const fresh = { ...next, isNew: true }
        placesOf(id).set(host, fresh)
        const written = keep(id, host, fresh).finally(() => void writing.delete(written))
        writing.add(written)
      }
      return {
        realms: () => (acceptsAny ? [] : known().realms),
        proved(realms) {
          const before = known()
          const isFirst = acceptsAny || before.realms.length === 0
          if (!isFirst && before.refused === null) return
          become({ realms: isFirst ? [...new Set([...before.realms, ...realms])] : before.realms, refused: null })
        },
        refused(why) {
          const before = known()
          if (before.refused === why) return
          log.warn('a challenge to a trunk is not answered', { trunkId: id, trunk: name, host, details: why })
          become({ realms: before.realms, refused: why })
        },
      }
    },
  }
}
