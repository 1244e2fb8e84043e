/** Owns which sentence of the passages that were found answers a question: the one that has most of the question's words. */
import { z } from 'zod'
import { sentencesOf } from '../../english/sentences.ts'

/** Of `knowledge_base.search`; what else is in it does not matter. */
const Found = z.object({ passages: z.array(z.object({ text: z.string() })) })

const maxPassages = 5
const maxPassage = 2000
const maxSaid = 400
/** Words of questions, which say nothing about their subject. */
const empty = new Set(
  `a about an and any are at be by can could did do does for from had has have have how i if in is it its like many me much my of on or
  our please tell that the their them there they this to up was we were what when where which who why will with would you your know`.split(
    /\s+/,
  ),
)
/** So many of the question's own words must be in the answer. */
const leastShare = 1 / 3

/** Null when nothing in the passages is near enough. */
export function bestSentenceOf(found: unknown, question: string): string | null {
  const parsed = Found.safeParse(found)
  const wanted = stemsOf(question)
  if (!parsed.success || wanted.size === 0) return null
  const sentences = parsed.data.passages
    .slice(0, maxPassages)
    .flatMap(({ text }) => sentencesOf(text.slice(0, maxPassage)))
  let best: { readonly sentence: string; readonly share: number } | null = null
  for (const sentence of sentences) {
    const said = stemsOf(sentence)
    const share = [...wanted].filter((stem) => said.has(stem)).length / wanted.size
    if (share > (best?.share ?? 0)) best = { sentence, share }
  }
  return best !== null && best.share >= leastShare ? best.sentence.slice(0, maxSaid) : null
}

/** The beginnings of words: "opens", "opening" and "opened" are one. */
const stemsOf = (text: string): ReadonlySet<string> =>
  new Set(
    (text.toLowerCase().match(/[a-z0-9]+/g) ?? [])
      .filter((word) => !empty.has(word))
      .map((word) => (word.length > 4 ? word.replace(/(ings?|ed|es|s|ly)$/, '').slice(0, 6) : word.replace(/s$/, ''))),
  )
