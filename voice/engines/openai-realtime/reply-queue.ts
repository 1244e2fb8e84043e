/** Owns the replies that wait to be asked for: their order, how often one is asked for again, and what the caller's words make needless. Bounded. */
import { frameMs } from '../../../model/frame.ts'
import { isRateLimit } from './error-codes.ts'

export type Wish = {
  /** They take the place of the session's for this reply; null: those of the session. */
  readonly instructions: (() => string) | null
  /** Owed word for word: an answer of the model's own does not stand for it. */
  readonly isOwed: boolean
}

export type Request = Wish & {
  readonly id: string
  tries: number
  unsaid: number
  isRepeated: boolean
  isOvertaken: boolean
}

export type ReplyQueue = {
  add(wish: Wish): void
  /** A plain reply, when nothing else waits and no tool is at work. */
  addAfterTools(): void
  next(): Request | null
  /** One that waits to be asked for again and has come after all. */
  take(id: string): Request | null
  /** The provider was busy with a reply of its own: it is the next, unless that one stands for it. */
  putBack(request: Request): void
  /** It came and was over without sound: what is owed is said next, but not for ever. */
  unsaid(request: Request): void
  /** The model had nothing to say, or its words were filtered: what is not owed is asked for once more. `null`: one that nobody had asked for. */
  emptied(request: Request | null): void
  /** It failed. `null`: one that nobody had asked for. Frames until it is asked for again; null: it is not. */
  again(request: Request | null, code: string): number | null
  /** The caller has spoken since: an answer to that stands for what waits now. */
  overtake(): void
  dropOvertaken(): void
}

const plain: Wish = { instructions: null, isOwed: false }
const maxWaiting = 16
const maxUnsaid = 4
/** What failed once may succeed a moment later; what fails twice is for a new session. */
const failedRests = [0]
/**
 * A limit on requests or tokens a minute is not mended at once, and a new session of the same account meets it, too. Three seconds of silence are
 * what a caller bears: then the session is given up as retryable, and who opened it decides.
 */
const limitedRests = [1_000 / frameMs, 2_000 / frameMs]

export function createReplyQueue(toolsAtWork: () => boolean): ReplyQueue {
  let waiting: Request[] = []
  let afterTools = false
  let count = 0

  const newRequest = (wish: Wish): Request => ({
    ...wish,
    id: `reply_${++count}`,
    tries: 0,
    unsaid: 0,
    isRepeated: false,
    isOvertaken: false,
  })
  const add = (wish: Wish): void => {
    if (waiting.length < maxWaiting) waiting.push(newRequest(wish))
  }
  return {
    add,
    addAfterTools() {
      afterTools = true
    },
    next() {
      if (waiting.length === 0 && afterTools && !toolsAtWork()) {
        afterTools = false
        add(plain)
      }
      return waiting.shift() ?? null
    },
    take(id) {
      const at = waiting.findIndex((request) => request.id === id)
      return at === -1 ? null : waiting.splice(at, 1)[0]!
    },
    putBack(request) {
      if (!request.isOvertaken) waiting.unshift(request)
    },
    unsaid(request) {
      if (request.isOwed && ++request.unsaid < maxUnsaid) waiting.unshift(request)
    },
    emptied(given) {
      const request = given ?? newRequest(plain)
      if (request.isOwed || request.isRepeated) return
      // What waits is an answer as well.
      if (given === null && waiting.some(({ isOwed }) => !isOwed)) return
      request.isRepeated = true
      waiting.unshift(request)
    },
    again(given, code) {
      const request = given ?? newRequest(plain)
      const rest = (isRateLimit(code) ? limitedRests : failedRests)[request.tries++]
      if (rest === undefined) return null
      waiting.unshift(request)
      return rest
    },
    overtake() {
      // Their results are with the model; those still at work are canceled by what the caller said.
      if (afterTools) add(plain)
      afterTools = false
      for (const request of waiting) request.isOvertaken = !request.isOwed
    },
    dropOvertaken() {
      waiting = waiting.filter((request) => !request.isOvertaken)
    },
  }
}
