/**
 * Owns whose words come first: what the caller began to say before the agent began is told before it, however late its text is. Utterances of the
 * caller are counted; each begins, and is settled by its final text. Pure.
 */

export type SpeechOrder = {
  callerStarts(): void
  /** Their text will come. */
  callerStops(): void
  textCame(): void
  /** The agent has begun to say this; again, it changes nothing. */
  agentBegins(itemId: string): void
  forget(itemId: string): void
  /** The caller's text is awaited. */
  awaitsText(): boolean
  /** The text that this item waits for has not come. */
  isHeld(itemId: string): boolean
  /** The same of what was said before they began: text that is awaited now is no matter of it. */
  isAnswer(itemId: string): boolean
  /** Nothing is waited for any more. */
  settle(): void
}

export function createSpeechOrder(): SpeechOrder {
  let started = 0
  let settled = 0
  let awaited = 0
  /** How many utterances of the caller had begun when an item began. */
  const before = new Map<string, number>()
  const isAnswer = (itemId: string): boolean => (before.get(itemId) ?? 0) > settled
  return {
    callerStarts: () => void started++,
    callerStops: () => void awaited++,
    textCame() {
      settled = Math.min(settled + 1, started)
      awaited = Math.max(0, awaited - 1)
    },
    agentBegins(itemId) {
      if (!before.has(itemId)) before.set(itemId, started)
    },
    forget: (itemId) => void before.delete(itemId),
    awaitsText: () => awaited > 0,
    isHeld: (itemId) => awaited > 0 || isAnswer(itemId),
    isAnswer,
    settle() {
      settled = started
      awaited = 0
    },
  }
}
