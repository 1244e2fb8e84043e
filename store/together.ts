/**
 * Owns work that is done together for all who ask for it at about the same time: while a group is under way those that come wait, and are the next group.
 * Nobody waits for company. A group that fails is done again one by one, so that one bad member costs the others nothing, unless the database is away.
 */
import { isOfOneMember } from './database-unreachable.ts'

export type TogetherOptions<Asked, Done> = {
  /** Only those of one key are done together; groups of different keys do not wait for each other. */
  keyOf(asked: Asked): string
  /** What became of each, in their order. */
  work(group: readonly Asked[]): Promise<readonly Done[]>
  /** Members of one group. */
  readonly most: number
}

type Waiting<Asked, Done> = { readonly asked: Asked; readonly done: PromiseWithResolvers<Done> }

export function createTogether<Asked, Done>(options: TogetherOptions<Asked, Done>): (asked: Asked) => Promise<Done> {
  const { keyOf, work, most } = options
  const queues = new Map<string, Waiting<Asked, Done>[]>()

  const settle = async (group: readonly Waiting<Asked, Done>[]): Promise<void> => {
    try {
      const done = await work(group.map(({ asked }) => asked))
      group.forEach((member, index) => member.done.resolve(done[index] as Done))
    } catch (error) {
      if (group.length === 1 || !isOfOneMember(error)) return group.forEach(({ done }) => done.reject(error))
      for (const member of group) await settle([member])
    }
  }
  const run = async (key: string, queue: Waiting<Asked, Done>[]): Promise<void> => {
    while (queue.length > 0) await settle(queue.splice(0, most))
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
