/**
 * Owns work that is done together for all who ask for it at about the same time: while a group is under way those that come wait, and are the next group.
 * Nobody who comes alone waits for company; where many come, a group begins at the next multiple of `pace`, as
 * all that is paced alike does (beat.ts), so that what they commit reaches the disk together. A group that fails is done again one by one, so that one bad member costs the others nothing, unless the database is away.
 */
import { beatBehind } from './beat.ts'
import { alone, settleGroup, type GroupWork, type Member } from './settle-group.ts'

export type TogetherOptions<Asked, Done> = {
  /** Only those of one key are done together; groups of different keys do not wait for each other. */
  keyOf(asked: Asked): string
  readonly work: GroupWork<Asked, Done>
  /** Members of one group. */
  readonly most: number
  /** Real ms from one beat to the next, unless a group is full; without it the next begins when the one before is done. */
  readonly pace?: number
}

type Queue<Asked, Done> = {
  readonly members: Member<Asked, Done>[]
  /** Nobody is waited for any more. */
  full: () => void
}

export function createTogether<Asked, Done>(options: TogetherOptions<Asked, Done>): (asked: Asked) => Promise<Done> {
  const { keyOf, work, most, pace = 0 } = options
  const queues = new Map<string, Queue<Asked, Done>>()

  const run = async (key: string, queue: Queue<Asked, Done>): Promise<void> => {
    const { members } = queue
    while (members.length > 0) {
      const began = performance.now()
      await settleGroup(members.splice(0, most), work, alone)
      const early = beatBehind(began, pace) - performance.now()
      if (early > 0 && members.length < most) await rest(queue, Math.ceil(early))
    }
    queues.delete(key)
  }
  return (asked) => {
    const done = Promise.withResolvers<Done>()
    const key = keyOf(asked)
    const queue = queues.get(key)
    if (queue) {
      queue.members.push({ asked, done })
      if (queue.members.length >= most) queue.full()
      return done.promise
    }
    const begun = { members: [{ asked, done }], full: () => {} }
    queues.set(key, begun)
    // After everything that had already arrived in this turn of the event loop.
    setImmediate(() => void run(key, begun))
    return done.promise
  }
}

async function rest(queue: Pick<Queue<never, never>, 'full'>, ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms).unref()
  queue.full = resolve
  await promise
  clearTimeout(timer)
}
