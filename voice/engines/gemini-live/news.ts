/**
 * Owns what a Gemini Live model is told in writing: what goes with the next text that it gets, and what it was told since it gave its last handle. A
 * session that goes on from that handle knows nothing of either: both are in the memory of the session.
 */
import type { Json } from '../../../model/json.ts'
import { memoryOf, type News } from './setup.ts'

export type ToldNews = {
  /** To be told with the next text. */
  add(news: News): void
  /** It has been told just now. */
  addTold(news: News): void
  /** Of what is to be told. */
  texts(): readonly string[]
  /** Something that is to be told is to be answered. */
  wantAnswer(): boolean
  /** All of it has been told. */
  tell(): void
  /** What it has been told is answered. */
  settle(): void
  /** The provider has kept what the model was told so far. */
  keep(handle: string): void
}

const maxNews = 32

/** What the session goes on from: its handle, if it was taken up, and the news of the session before. */
type Start = {
  readonly resumed: string | null
  readonly before: readonly News[]
  remember(memory: Json): void
}

export function createToldNews({ resumed, before, remember }: Start): ToldNews {
  let handle = resumed
  let entries = before.map((news) => ({ news, isTold: false }))
  const changed = (): void => {
    const all = entries.map(({ news }) => news)
    if (handle !== null) remember(memoryOf(handle, all))
  }
  const push = (news: News, isTold: boolean): void => {
    entries = [...entries, { news, isTold }].slice(-maxNews)
    changed()
  }
  const due = (): readonly News[] => entries.flatMap(({ news, isTold }) => (isTold ? [] : [news]))
  return {
    add: (news) => push(news, false),
    addTold: (news) => push(news, true),
    texts: () => due().map(({ text }) => text),
    wantAnswer: () => due().some(({ wantsAnswer }) => wantsAnswer),
    tell() {
      entries = entries.map(({ news }) => ({ news, isTold: true }))
    },
    settle() {
      if (!entries.some(({ news, isTold }) => isTold && news.wantsAnswer)) return
      entries = entries.map((entry) =>
        entry.isTold ? { ...entry, news: { ...entry.news, wantsAnswer: false } } : entry,
      )
      changed()
    },
    keep(newest) {
      handle = newest
      entries = entries.filter(({ isTold }) => !isTold)
      changed()
    },
  }
}
