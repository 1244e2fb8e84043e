/**
 * Owns how many connections one address may have where the driver does not tell which of them has closed. The library says so of a connection
 * that has asked nothing yet, and of one whose request is being answered, but not of one that waits for its next request. So it is counted:
 * - silent: asked nothing yet, exactly. The library itself closes them `libraryPatience` after they were opened.
 * - running: being answered, exactly.
 * - resting: answered, and kept for a next request. That one is gone is known late at the latest, when the library has closed it; what closes
 *   without a word is taken for the one that was answered last.
 * A request belongs to a resting connection where there is one, else to a silent one.
 */
import { addressGroupOf } from '../../net/addresses.ts'
import type { PlaceLimits } from '../../net/connection-places.ts'

export type UwsPlaces = {
  /** Of a connection that opens. Null: it is to be closed at once. */
  open(address: string): SilentPlace | null
  ask(address: string): RunningPlace
  /** Something closed that was neither silent nor running. */
  closedUnseen(): void
}
export type SilentPlace = { closed(): void }
export type RunningPlace = {
  /** Are there so many others of this address that its connection is to be closed after the answer? */
  isCrowded(): boolean
  /** `stays`: its connection may come with a next request. Idempotent. */
  over(stays: boolean): void
}

type Token = { readonly group: Group; readonly kind: 'silent' | 'resting'; readonly until: number; isOver: boolean }
type Group = { readonly name: string; silent: Token[]; resting: Token[]; running: number; live: number }

/** Ms. Measured: about 30 s after its last byte was of use, trickling or not. */
const libraryPatience = 36_000

const anybody: RunningPlace = { isCrowded: () => false, over: () => undefined }
const anySilent: SilentPlace = { closed: () => undefined }

export function createUwsPlaces(limits: Omit<PlaceLimits, 'maxConnections'>, now: () => number): UwsPlaces {
  const { maxConnectionsPerAddress: most, isExempt } = limits
  const groups = new Map<string, Group>()
  /** The latest last, some of them over. */
  let rested: Token[] = []
  let sweepAt = now() + libraryPatience

  function groupOf(address: string): Group {
    const name = addressGroupOf(address)
    const known = groups.get(name)
    if (known) return known
    const group: Group = { name, silent: [], resting: [], running: 0, live: 0 }
    groups.set(name, group)
    return group
  }

  function add(group: Group, kind: Token['kind']): Token {
    const token: Token = { group, kind, until: now() + libraryPatience, isOver: false }
    group[kind].push(token)
    group.live += 1
    return token
  }

  function end(token: Token): void {
    if (token.isOver) return
    token.isOver = true
    token.group.live -= 1
  }

  /** The longest first. */
  function liveOf(group: Group, kind: Token['kind']): readonly Token[] {
    const at = now()
    for (const token of group[kind]) if (token.until <= at) end(token)
    group[kind] = group[kind].filter(({ isOver }) => !isOver)
    return group[kind]
  }

  /** The one that rests since the shortest time, else the one that is silent since the longest. */
  function takeOne({ resting, silent }: Group): void {
    let token = resting.pop()
    while (token?.isOver) token = resting.pop()
    token ??= silent.shift()
    while (token?.isOver) token = silent.shift()
    if (token) end(token)
  }

  function forgetEmpty(group: Group): void {
    if (group.live === 0 && group.running === 0) groups.delete(group.name)
  }

  /** Whoever was here once must not be remembered for ever. */
  function sweep(): void {
    for (const group of groups.values()) {
      liveOf(group, 'silent')
      liveOf(group, 'resting')
      forgetEmpty(group)
    }
    rested = rested.filter(({ isOver }) => !isOver)
    sweepAt = now() + libraryPatience
  }

  return {
    open(address) {
      if (isExempt(address)) return anySilent
      if (now() >= sweepAt) sweep()
      const group = groupOf(address)
      if (group.running + group.live >= most && group.running + liveOf(group, 'silent').length >= most) return null
      const token = add(group, 'silent')
      return {
        closed() {
          end(token)
          forgetEmpty(group)
        },
      }
    },
    ask(address) {
      if (isExempt(address)) return anybody
      const group = groupOf(address)
      takeOne(group)
      group.running += 1
      let isOver = false
      return {
        isCrowded: () => group.live >= most / 2 && liveOf(group, 'resting').length >= most / 2,
        over(stays) {
          if (isOver) return
          isOver = true
          group.running -= 1
          if (stays) rested.push(add(group, 'resting'))
          forgetEmpty(group)
        },
      }
    },
    closedUnseen() {
      let token = rested.pop()
      while (token?.isOver) token = rested.pop()
      if (token) end(token)
    },
  }
}
