/**
 * Owns work that is done together for all who ask for it at about the same time: while a group is under way those that come wait, and are the next group.
 * Nobody waits for company. A group that fails is done again one by one, so that one bad member costs the others nothing, unless the database is away.
 */
import { alone, settleGroup, type GroupWork, type Member } from './settle-group.ts'

export type TogetherOptions<Asked, Done> = {
  /** Only those of one key are done together; groups of different keys do not wait for each other. */
  keyOf(asked: Asked): string
  readonly work: GroupWork<Asked, Done>
  /** Members of one group. */
  readonly most: number
}

export function createTogether<Asked, Done>(options: TogetherOptions<Asked, Done>): (asked: Asked) => Promise<Done> {
  const { keyOf, work, most } = options
  const queues = new Map<string, Member<Asked, Done>[]>()

  const run = async (key: string, queue: Member<Asked, Done>[]): Promise<void> => {
    while (queue.length > 0) await settleGroup(queue.splice(0, most), work, alone)
    queues.delete(key)
  }
  return (asked) => {
    const done = Promise.withResolvers<Done>()
    const key = keyOf(asked)
    const queue = queues.get(key)
    if (queue) {
      queue.push({ asked, done })
      return done.promise
    }
    const begun = [{ asked, done }]
    queues.set(key, begun)
    // After everything that had already arrived in this turn of the event loop.
    setImmediate(() => void run(key, begun))
    return done.promise
  }
}
