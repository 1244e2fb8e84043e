/** Owns who hears what on the in-process bus: subscribers by pattern, and the remembered route of each subject. */
import type { BusMessage } from '../../model/bus.ts'
import { assertPattern, isWildcard, subjectMatches } from './bus-rules.ts'

export type Subscriber = {
  readonly pattern: string
  readonly queue: string | null
  readonly handler: (message: BusMessage) => void
  /** Once true, nothing is delivered any more, not even what was published before. */
  closed: boolean
}

/** The members of one queue; they take turns. */
type Group = { readonly members: readonly Subscriber[]; next: number }

export type Route = { readonly singles: readonly Subscriber[]; readonly groups: readonly Group[] }

/** Subjects come and go with the calls: past this many, all routes are forgotten and found again one by one. */
const maxRoutes = 4096

export function createSubscribers() {
  const exact = new Map<string, Set<Subscriber>>()
  const wild = new Set<Subscriber>()
  const routes = new Map<string, Route>()

  function forgetRoutes(pattern: string): void {
    if (isWildcard(pattern)) routes.clear()
    else routes.delete(pattern)
  }

  function add(subscriber: Subscriber): void {
    assertPattern(subscriber.pattern)
    forgetRoutes(subscriber.pattern)
    if (isWildcard(subscriber.pattern)) return void wild.add(subscriber)
    const known = exact.get(subscriber.pattern)
    if (known) known.add(subscriber)
    else exact.set(subscriber.pattern, new Set([subscriber]))
  }

  function remove(subscriber: Subscriber): void {
    subscriber.closed = true
    forgetRoutes(subscriber.pattern)
    wild.delete(subscriber)
    const known = exact.get(subscriber.pattern)
    known?.delete(subscriber)
    if (known?.size === 0) exact.delete(subscriber.pattern)
  }

  function routeOf(subject: string): Route {
    const known = routes.get(subject)
    if (known) return known
    const matching = [...wild].filter((subscriber) => subjectMatches(subscriber.pattern, subject))
    const route = routeTo([...(exact.get(subject) ?? []), ...matching])
    if (routes.size >= maxRoutes) routes.clear()
    routes.set(subject, route)
    return route
  }

  const all = (): Subscriber[] => [...wild, ...[...exact.values()].flatMap((known) => [...known])]

  return { add, remove, routeOf, all, isRouted: (subject: string) => routes.has(subject) }
}

function routeTo(subscribers: readonly Subscriber[]): Route {
  const groups = Map.groupBy(
    subscribers.filter((subscriber) => subscriber.queue !== null),
    (subscriber) => subscriber.queue,
  )
  return {
    singles: subscribers.filter((subscriber) => subscriber.queue === null),
    groups: [...groups.values()].map((members) => ({ members, next: 0 })),
  }
}

export const isEmpty = (route: Route): boolean => route.singles.length === 0 && route.groups.length === 0

/** Of frames and most other messages: nothing is to be chosen. */
export const onlyReceiverOf = ({ singles, groups }: Route): Subscriber | undefined =>
  singles.length === 1 && groups.length === 0 ? singles[0] : undefined

/** Chosen at delivery, so that a member that left in between does not take the message with it. */
export function receiversOf(route: Route): Subscriber[] {
  const receivers = route.singles.filter((subscriber) => !subscriber.closed)
  for (const group of route.groups) {
    const member = nextOf(group)
    if (member) receivers.push(member)
  }
  return receivers
}

function nextOf(group: Group): Subscriber | null {
  for (let tried = 0; tried < group.members.length; tried++) {
    const member = group.members[group.next % group.members.length]
    group.next = (group.next + 1) % group.members.length
    if (member && !member.closed) return member
  }
  return null
}
