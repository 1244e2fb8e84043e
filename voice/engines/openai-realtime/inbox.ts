/** Owns what a provider says while nobody takes it: kept in order, bounded, for whoever takes it next. */

export type Inbox<Message> = {
  message(message: Message): void
  /** At most once. */
  lost(details: string): void
  /** From here on, and what was kept. */
  open(take: (message: Message) => void, lost: (details: string) => void): void
  /** From here on it is kept again. */
  hold(): void
}

/** Nothing has been asked for yet: a provider has little to say. */
const maxKept = 64

export function createInbox<Message>(): Inbox<Message> {
  let taker: { take(message: Message): void; lost(details: string): void } | null = null
  const kept: Message[] = []
  let end: string | null = null

  return {
    message(message) {
      if (taker) taker.take(message)
      else if (kept.length < maxKept) kept.push(message)
    },
    lost(details) {
      end = details
      taker?.lost(details)
    },
    open(take, lost) {
      taker = { take, lost }
      while (kept.length > 0 && taker !== null) take(kept.shift()!)
      if (end !== null && taker !== null) lost(end)
    },
    hold() {
      taker = null
    },
  }
}
