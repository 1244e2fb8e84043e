/**
 * Owns what becomes of those who asked for something together when it fails: one bad member costs the others nothing, and while the database is
 * away nobody asks it once more for each of them.
 */
import { connectionLost, isOfOneMember } from './database-unreachable.ts'

export type Member<Asked, Done> = { readonly asked: Asked; readonly done: PromiseWithResolvers<Done> }

/** What became of each, in their order. */
export type GroupWork<Asked, Done> = (group: readonly Asked[]) => Promise<readonly Done[]>

/** `partOf`: how many go together again when all of them failed. One part after another; who is done waits for no other. */
export async function settleGroup<Asked, Done>(
  group: readonly Member<Asked, Done>[],
  work: GroupWork<Asked, Done>,
  partOf: (members: number) => number,
): Promise<void> {
  try {
    const done = await work(group.map(({ asked }) => asked))
    group.forEach((member, index) => member.done.resolve(done[index] as Done))
  } catch (error) {
    if (group.length === 1 || !isOfOneMember(error)) return group.forEach(({ done }) => done.reject(error))
    const size = partOf(group.length)
    for (let at = 0; at < group.length; at += size) await settleGroup(group.slice(at, at + size), work, partOf)
  }
}

/** Each lock that somebody else holds was waited for once already. */
export const alone = (): number => 1
/** Few queries find the bad one among many. */
export const halves = (members: number): number => Math.ceil(members / 2)

/** Connections that are closed are closed one after another: the next one that is taken may be lost as well. */
const mostLosses = 2

/** The same, over the next connection when its own is lost: for work of which twice is no more than once. */
export const overAnyConnection =
  <Asked, Done>(work: (asked: Asked) => Promise<Done>): ((asked: Asked) => Promise<Done>) =>
  async (asked) => {
    for (let losses = 1; ; losses++) {
      try {
        return await work(asked)
      } catch (error) {
        if (losses > mostLosses || !connectionLost(error)) throw error
      }
    }
  }
