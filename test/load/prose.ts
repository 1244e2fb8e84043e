/** Owns texts for benches: words as often as in a language (Zipf), the same at every run. */
import { createRandom } from '../fake/random.ts'

const vocabulary = 30_000
const syllables =
  'ba ce di fo gu la me ni po ru sa te vi wo xu ka le mi no pu ra se ti vo zu sha the ing ion ent'.split(' ')

export function createProse(seed: number) {
  const random = createRandom(seed)
  const words = Array.from({ length: vocabulary }, (_, rank) => wordOf(rank))
  const word = (): string => {
    // As often as one over its rank.
    const rank = Math.floor(Math.exp(random.next() * Math.log(vocabulary))) - 1
    return words[rank] ?? ''
  }
  const sentence = (): string => `${Array.from({ length: 8 + random.below(10) }, word).join(' ')}.`
  return {
    word,
    paragraph: (): string => Array.from({ length: 4 + random.below(3) }, sentence).join(' '),
    /** A question of rare and frequent words. */
    question: (): string => Array.from({ length: 3 + random.below(4) }, word).join(' '),
  }
}

/** Frequent words are short. */
function wordOf(rank: number): string {
  let word = ''
  for (let left = rank + 1; left > 0; left = Math.floor(left / syllables.length))
    word += syllables[left % syllables.length] ?? ''
  return word
}
