/** Owns taking what is posted to an actor one by one, in the order in which it came. */

export type Mailbox<Message> = {
  /**
   * What became of the message; false when the box is full and it was not even kept. Rejects when taking it failed; the next one is taken all the
   * same.
   */
  post(message: Message): Promise<boolean>
  /** Resolves when every message has been taken. */
  empty(): Promise<void>
}

export function createMailbox<Message>(limit: number, take: (message: Message) => Promise<boolean>): Mailbox<Message> {
  let waiting = 0
  let last: Promise<boolean> = Promise.resolve(true)
  return {
    post(message) {
      if (waiting >= limit) return Promise.resolve(false)
      waiting++
      last = last.catch(() => false).then(() => take(message))
      void last.catch(() => {}).finally(() => waiting--)
      return last
    },
    empty: async () => void (await last.catch(() => false)),
  }
}
