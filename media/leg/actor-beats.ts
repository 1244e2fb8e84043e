/**
 * Owns which processes that run calls are heard by the one that has their legs: each tells ten times a second that it lives (model/node-beat.ts). One that
 * is silent may be gone, or the bus to it; who takes a call over, and when, is not decided here.
 */
import type { Bus } from '../../model/bus.ts'
import { everyBeat, nodeOf } from '../../model/node-beat.ts'

export type ActorBeats = {
  /** It was heard before, and is not any more. */
  isSilent(node: string): boolean
  /** Idempotent. */
  close(): void
}

/** Ms. Three beats, and the jitter of a busy machine. */
const silentAfter = 350
const maxNodes = 1_000

/** `now` in ms that never jump. */
export function createActorBeats({ bus, now }: { readonly bus: Bus; readonly now: () => number }): ActorBeats {
  const heardAt = new Map<string, number>()
  const hearing = bus.subscribe(everyBeat, ({ subject }) => {
    const node = nodeOf(subject)
    // The newest is the last of them.
    heardAt.delete(node)
    heardAt.set(node, now())
    if (heardAt.size > maxNodes) heardAt.delete(heardAt.keys().next().value!)
  })
  return {
    isSilent: (node) => now() - (heardAt.get(node) ?? Infinity) > silentAfter,
    close: () => hearing.close(),
  }
}
