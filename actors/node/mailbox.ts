/** Owns taking letters one by one, in the order in which they came. */

export type Mailbox<Letter> = {
  /** What became of the letter; false when the box is full and it was not even kept. Rejects when taking it failed; the next one is taken all the same. */
  post(letter: Letter): Promise<boolean>
  /** Resolves when every letter has been taken. */
  empty(): Promise<void>
}

export function createMailbox<Letter>(limit: number, take: (letter: Letter) => Promise<boolean>): Mailbox<Letter> {
  let waiting = 0
  let last: Promise<boolean> = Promise.resolve(true)
  return {
    post(letter) {
      if (waiting >= limit) return Promise.resolve(false)
      waiting++
      last = last.catch(() => false).then(() => take(letter))
      void last.catch(() => {}).finally(() => waiting--)
      return last
    },
    empty: async () => void (await last.catch(() => false)),
  }
}
