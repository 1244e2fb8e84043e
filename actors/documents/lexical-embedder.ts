/**
 * Owns vectors without a model: which words a text has, and which runs of letters, hashed into a fixed number of parts. Lexical, and nothing more:
 * texts are near each other that share words or parts of words ("refund", "refunded"), never for what they mean.
 */
import { toVector, type Embedder, type Vector } from '../../model/knowledge.ts'

const parts = 512
/** Five times what chance makes of two texts that share nothing, which is 1/√parts. */
const floor = 0.22
/** Of a question or passage; what is longer is none. */
const maxWords = 2_000
const maxWord = 40
/** Runs of so many letters, the ends of the word marked. */
const runLengths = [3, 4]
/** What of a word's weight is that of the word itself; the rest is its runs'. */
const wholeShare = 0.5
/** Of words by their length: short ones are in every text. */
const weights = [0, 0.05, 0.1, 0.3, 0.6, 0.9]

export const lexicalEmbedder: Embedder = {
  name: 'lexical-1',
  floor,
  isLocal: true,
  embed: (texts) => Promise.resolve(texts.map(lexicalVector)),
}

export function lexicalVector(text: string): Vector {
  const sums = new Float64Array(parts)
  for (const word of wordsOf(text)) {
    const weight = isUnspaced(word) ? 1 : (weights[word.length] ?? 1)
    add(sums, `=${word}`, weight * Math.sqrt(wholeShare))
    const runs = runsOf(word)
    for (const run of runs) add(sums, run, weight * Math.sqrt((1 - wholeShare) / runs.length))
  }
  return toVector(sums)
}

function wordsOf(text: string): Set<string> {
  const plain = text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()
  const words = new Set<string>()
  for (const [word] of plain.matchAll(/[\p{L}\p{N}]+/gu)) {
    if (words.size >= maxWords) break
    // Scripts without blanks between words: each pair of letters stands for one.
    if (isUnspaced(word)) for (const pair of runsIn(Array.from(word), 2)) words.add(pair)
    else words.add(word.slice(0, maxWord))
  }
  return words
}

const isUnspaced = (word: string): boolean => /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]/u.test(word)

const runsOf = (word: string): string[] =>
  isUnspaced(word) ? [word] : runLengths.flatMap((length) => runsIn(Array.from(`^${word}$`), length))

const runsIn = (letters: readonly string[], length: number): string[] =>
  letters.length <= length
    ? [letters.join('')]
    : Array.from({ length: letters.length - length + 1 }, (_, at) => letters.slice(at, at + length).join(''))

/** By a hash: where, and with which sign, so that what falls together by chance cancels out on average. FNV-1a. */
function add(sums: Float64Array, feature: string, weight: number): void {
  let hash = 0x811c9dc5
  for (let at = 0; at < feature.length; at += 1) hash = Math.imul(hash ^ feature.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  hash ^= hash >>> 13
  const part = (hash >>> 8) % parts
  sums[part] = (sums[part] ?? 0) + (hash & 1 ? weight : -weight)
}
