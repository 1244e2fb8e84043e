/**
 * Owns what the words of a caller tell about whose turn it is: a mere backchannel over the agent's speech wants no answer, and who stops behind a
 * comma or an "and" has more to say. Pure. Of languages that are not listed nothing is guessed but what punctuation says.
 */

/** Noises that never say more than "I am listening". */
const sounds = words('mhm mm mmm mmhm mmhmm hm hmm hmhm uhhuh aha ah oh äh euh うん ふんふん 嗯')
/** These are answers as well: to a question that was just asked. */
const assents = words(
  'yes yeah yep ok okay right sure alright isee ja jaja genau gut achso oui ouais daccord sí si claro vale sì certo sim pois tak はい ええ そう そうですか 好 好的 对',
)
/** Behind these something must come. */
const openEnds = words(
  'and or but because so if with to of for the a my is um uh er und oder aber weil dass wenn mit zu für mein meine ist äh ähm et ou mais parce que si avec de pour le la mon ma est euh y o pero porque con para el mi es e ma perché con per il',
)

/** Of what was said while the agent spoke; `spoken` is what the agent was saying. */
export function isBackchannel(text: string, spoken: string): boolean {
  const said = text.toLowerCase().split(/[\s,.;!?。、！？…-]+/u)
  const whole = said.map(lettersOf).join('')
  if (whole === '' || whole.length > 24) return false
  const isAssent = (word: string): boolean => sounds.has(word) || (!asks(spoken) && assents.has(word))
  return isAssent(whole) || said.map(lettersOf).every((word) => word === '' || isAssent(word))
}

/** What was said so far wants to be gone on with. */
export function looksUnfinished(text: string): boolean {
  const trimmed = text.trim()
  if (/(?:[,;:，、；：…–—-]|\.\.)$/u.test(trimmed)) return true
  if (/[.!?。！？؟।]["'”»)]?$/u.test(trimmed)) return false
  return openEnds.has(lettersOf(trimmed.toLowerCase().split(/\s+/u).at(-1) ?? ''))
}

const asks = (spoken: string): boolean => /[?？؟]["'”»)\s]*$/u.test(spoken)

const lettersOf = (text: string): string => text.replace(/[^\p{L}\p{N}]+/gu, '')

function words(list: string): ReadonlySet<string> {
  return new Set(list.split(' '))
}
