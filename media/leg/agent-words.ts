/**
 * Owns what a leg is told of the words that its agent is saying: the actor that says them may be gone before they have been heard, and whoever takes the
 * call over learns here what the caller has heard of them, and will.
 */
import type { AgentWords, LeftWords } from '../../model/leg.ts'

export type SaidWords = {
  says(words: AgentWords): void
  /** What was not played is not heard any more. */
  cut(lastPlayedSeq: number): void
  /** Of which the leg has had frames up to this one. */
  left(lastTakenSeq: number): LeftWords[]
  clear(): void
}

/** What was said before has long become turns. */
const maxKept = 8

type Kept = AgentWords & { readonly cutTo: number | null }

export function createSaidWords(): SaidWords {
  let said: Kept[] = []
  return {
    says(words) {
      const before = said.findLast(({ firstSeq }) => firstSeq <= words.firstSeq)
      const memory = words.memory ?? before?.memory
      const cutTo = before?.firstSeq === words.firstSeq ? before.cutTo : null
      const others = said.filter(({ firstSeq }) => firstSeq < words.firstSeq)
      said = [...others, { ...words, cutTo, ...(memory !== undefined && { memory }) }].slice(-maxKept)
    },
    cut(lastPlayedSeq) {
      said = said
        .filter(({ firstSeq }) => firstSeq <= lastPlayedSeq)
        .map((words) => ({ ...words, cutTo: Math.min(words.cutTo ?? Infinity, lastPlayedSeq) }))
    },
    left: (lastTakenSeq) =>
      said.flatMap(({ cutTo, ...words }, index) => {
        const next = said[index + 1]?.firstSeq ?? Infinity
        const last = Math.min(lastTakenSeq, cutTo ?? Infinity, next - 1)
        const sent = Math.min(last - words.firstSeq + 1, words.frames ?? Infinity)
        const isCut = cutTo !== null && sent !== words.frames
        return sent > 0 ? [{ ...words, sent, isCut }] : []
      }),
    clear: () => void (said = []),
  }
}
