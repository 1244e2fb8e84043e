/**
 * Owns what is believed of an extractor: values of the worker's own dimensions, that fit them and were said. Everything else is dropped, and told by
 * its key. Pure. docs/design/extraction.md "What is believed".
 */
import { dimensionValueOf } from '../../model/dimension-value.ts'
import type { Claim, Claims, HeardTurn, Quote } from '../../model/extraction.ts'
import type { Json } from '../../model/json.ts'
import { spansOf, wordsIn } from '../../model/words.ts'
import type { Dimension, NextAction } from '../../model/worker.ts'
import { isAnswered, provenQuote } from './quotes.ts'

export type Found = Quote & { readonly value: Json }

/** Keys, as the extractor named them. */
export type Dropped = {
  readonly unknown: readonly string[]
  readonly unquoted: readonly string[]
  readonly unfit: readonly string[]
}
export type FoundAction = Quote & { readonly key: string; readonly data: ReadonlyMap<string, Found> }

export type Verified = {
  readonly values: ReadonlyMap<string, Found>
  readonly nextAction: FoundAction | 'undetermined' | 'none' | null
  readonly dropped: Dropped
}

type Asked = {
  readonly turns: readonly HeardTurn[]
  readonly dimensions: readonly Dimension[]
  readonly nextActions: readonly NextAction[]
}

/** Of several claims for a key the one that was said last counts. */
export function verifyClaims({ turns, dimensions, nextActions }: Asked, claims: Claims): Verified {
  const drops = createDrops()
  const values = new Map<string, Found>()
  for (const claim of claims.values) {
    const dimension = dimensions.find(({ key }) => key === claim.key)
    const found = dimension === undefined ? drops.unknown(claim.key) : valueOf(turns, dimension, claim, drops)
    if (found !== null && found.turn >= (values.get(claim.key)?.turn ?? 0)) values.set(claim.key, found)
  }
  return { values, nextAction: actionOf(turns, nextActions, claims.nextAction, drops), dropped: drops.all() }
}

function valueOf(turns: readonly HeardTurn[], dimension: Dimension, claim: Claim, drops: Drops): Found | null {
  const value = dimensionValueOf(dimension, claim.value)
  if (value === null) return drops.unfit(claim.key)
  const quote = provenQuote(turns, claim)
  if (quote === null || !isAnswered(turns, quote.turn)) return drops.unquoted(claim.key)
  return contradicts(dimension, value, quote.quote) ? drops.unquoted(claim.key) : { ...quote, value }
}

/** Words for numbers: whoever said one of them may have meant any number. */
const numberWords =
  /\b(?:zero|oh|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty|hundred|thousand|dozen|half|couple)\b/i

/** The words are those of another option, or of other numbers, and of this one not. */
function contradicts({ type, options = [] }: Dimension, value: Json, quote: string): boolean {
  if (type === 'enum') {
    const said = options.filter((option) => spansOf(quote, option).length > 0)
    return said.length > 0 && !said.some((option) => option === value)
  }
  if (type !== 'number' || numberWords.test(quote)) return false
  const numbers = quote.match(/\d+(?:[.,]\d+)*/g) ?? []
  return numbers.length > 0 && !numbers.some((number) => numbersOf(number).includes(Math.abs(Number(value))))
}

/** `1,200` and `1.200` are a number or another, by where they are written. */
const numbersOf = (written: string): number[] => [
  Number(written.replaceAll(/[.,]/g, '')),
  Number(written.replaceAll(',', '')),
  Number(written.replaceAll('.', '').replace(',', '.')),
]

function actionOf(
  turns: readonly HeardTurn[],
  nextActions: readonly NextAction[],
  claimed: Claims['nextAction'],
  drops: Drops,
): Verified['nextAction'] {
  if (claimed === null || claimed === 'none') return claimed
  if (claimed.key === 'undetermined') return 'undetermined'
  if (!nextActions.some(({ key }) => key === claimed.key)) return drops.unknown(claimed.key)
  const quote = provenQuote(turns, claimed)
  if (quote === null) return drops.unquoted(claimed.key)
  const data = claimed.data.flatMap((claim): [string, Found][] => {
    const said = provenQuote(turns, claim)
    if (said === null) drops.unquoted(`${claimed.key}.${claim.key}`)
    return said === null ? [] : [[claim.key, { ...said, value: claim.value }]]
  })
  return { ...quote, key: claimed.key, data: new Map(data) }
}

type Drops = ReturnType<typeof createDrops>

const maxKeys = 10
const maxKey = 64

function createDrops() {
  const keys = { unknown: new Set<string>(), unquoted: new Set<string>(), unfit: new Set<string>() }
  const drop =
    (why: keyof typeof keys) =>
    (key: string): null => {
      // A key is a word of the configuration, or of nobody: what else stands in it is not repeated to the account.
      const name = wordsIn(key.slice(0, maxKey))
        .map(({ word }) => word)
        .join('_')
      if (keys[why].size < maxKeys) keys[why].add(name === '' ? '?' : name)
      return null
    }
  return {
    unknown: drop('unknown'),
    unquoted: drop('unquoted'),
    unfit: drop('unfit'),
    all: (): Dropped => ({ unknown: [...keys.unknown], unquoted: [...keys.unquoted], unfit: [...keys.unfit] }),
  }
}
