/**
 * Owns how many connections strangers may hold: in all, and of one client address (one /64 of IPv6). Who comes when all places are taken gets
 * that of a connection that waits and has shown no proof of who it is, the one that waits for longest; one that has something to do keeps its own.
 */
import { addressGroupOf } from './addresses.ts'

export type PlaceLimits = {
  readonly maxConnections: number
  /** Of one address, or one /64 of IPv6. */
  readonly maxConnectionsPerAddress: number
  /** Of an address that stands for many clients, such as a proxy: it is bounded only by the number in all. */
  readonly isExempt: (address: string) => boolean
}

/** Of one connection, which waits at first. */
export type Place = {
  /** It has something to do and is not cut for another; as often as it is said, so often must `rest` be. */
  begin(): void
  rest(): void
  /** Its client has shown who it is: others are cut first. */
  prove(): void
  /** The connection is closed. Idempotent. */
  give(): void
}

export type ConnectionPlaces = {
  /** `cut` closes the connection, whose place is then given already. Null: there is none, not even another's. */
  take(address: string, cut: () => void): Place | null
  /** For a connection of our own, which is never cut. */
  takeOwn(): Place | null
  held(): number
  /** That found no place. */
  refused(): number
  /** That were cut for others. */
  cut(): number
}

type Holder = {
  readonly group: Group | null
  readonly cut: () => void
  tasks: number
  isProven: boolean
  isOver: boolean
}
/** Holders that wait, the longest first. */
type Waiting = { readonly strangers: Set<Holder>; readonly proven: Set<Holder> }
type Group = { readonly name: string; held: number; readonly waiting: Waiting }

const nobodyWaits = (): Waiting => ({ strangers: new Set(), proven: new Set() })

export function createConnectionPlaces(limits: PlaceLimits): ConnectionPlaces {
  const { maxConnections, maxConnectionsPerAddress, isExempt } = limits
  const groups = new Map<string, Group>()
  const all = nobodyWaits()
  let [held, refused, wereCut] = [0, 0, 0]

  function wait(holder: Holder): void {
    for (const { strangers, proven } of waitingOf(holder)) (holder.isProven ? proven : strangers).add(holder)
  }
  function forget(holder: Holder): void {
    for (const { strangers, proven } of waitingOf(holder)) {
      strangers.delete(holder)
      proven.delete(holder)
    }
  }
  const waitingOf = ({ group }: Holder): readonly Waiting[] => (group ? [all, group.waiting] : [all])

  function groupOf(address: string): Group | null {
    if (isExempt(address)) return null
    const name = addressGroupOf(address)
    const known = groups.get(name)
    if (known) return known
    const group = { name, held: 0, waiting: nobodyWaits() }
    groups.set(name, group)
    return group
  }

  /** False: nobody there can be cut. */
  function makeRoom({ strangers, proven }: Waiting): boolean {
    const [victim] = strangers.size > 0 ? strangers : proven
    if (!victim) return false
    give(victim)
    wereCut += 1
    victim.cut()
    return true
  }

  function give(holder: Holder): void {
    if (holder.isOver) return
    holder.isOver = true
    forget(holder)
    held -= 1
    const { group } = holder
    if (!group) return
    group.held -= 1
    if (group.held === 0) groups.delete(group.name)
  }

  function hold(group: Group | null, cut: () => void): Place {
    const holder: Holder = { group, cut, tasks: 0, isProven: false, isOver: false }
    held += 1
    // A group whose last holder was cut a moment ago has been forgotten.
    if (group) groups.set(group.name, group)
    if (group) group.held += 1
    wait(holder)
    return {
      begin() {
        holder.tasks += 1
        forget(holder)
      },
      rest() {
        holder.tasks -= 1
        if (holder.tasks === 0 && !holder.isOver) wait(holder)
      },
      prove() {
        if (holder.isProven) return
        holder.isProven = true
        if (holder.tasks > 0 || holder.isOver) return
        forget(holder)
        wait(holder)
      },
      give: () => give(holder),
    }
  }

  function refuse(group: Group | null = null): null {
    refused += 1
    if (group?.held === 0) groups.delete(group.name)
    return null
  }

  return {
    take(address, cut) {
      const group = groupOf(address)
      if (group && group.held >= maxConnectionsPerAddress && !makeRoom(group.waiting)) return refuse(group)
      if (held >= maxConnections && !makeRoom(all)) return refuse(group)
      return hold(group, cut)
    },
    takeOwn() {
      if (held >= maxConnections && !makeRoom(all)) return null
      const place = hold(null, () => undefined)
      place.begin()
      return place
    },
    held: () => held,
    refused: () => refused,
    cut: () => wereCut,
  }
}
