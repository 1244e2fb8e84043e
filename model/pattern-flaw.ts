/**
 * Owns what is wrong with a regular expression that somebody configured: it cannot be compiled, or there are texts over which it takes exponential
 * time. It does where a repeated part of it can take the same characters in two ways. Patterns are read into positions, one for each character that they
 * ask for, and which of them follow each other (Glushkov's automaton); two ways to go in a circle over the same text are looked for in pairs of positions
 * (Weber and Seidl 1991). Pure.
 */

/** What looking may cost, for several patterns together: a step takes less than a microsecond. */
export type PatternBudget = { steps: number }

const maxLength = 1_000
const maxPositions = 1_000
/** More copies of a part that is repeated show nothing new. */
const maxCopies = 4

/** In words that fit behind the name of a field; null: nothing. */
export function patternFlaw(pattern: string, budget: PatternBudget): string | null {
  if (pattern.length > maxLength) return `must have ${maxLength} characters at most`
  const flags = ['u', ''].find((flags) => compiles(pattern, flags))
  if (flags === undefined) return 'must be a regular expression (ECMA-262)'
  try {
    const { follow, sources, doubled } = automatonOf(pattern, flags === 'u', budget)
    return isAmbiguous({ follow, doubled, meet: meetingOf(sources, flags, budget), budget }) ? dangerous : null
  } catch (error) {
    if (error instanceof TooLarge) return 'must be simpler: it cannot be told whether it takes exponential time'
    throw error
  }
}

const dangerous = 'must not repeat what is repeated in it already: over some texts it takes exponential time'

class TooLarge extends Error {
  override readonly name = 'TooLarge'
}

function compiles(pattern: string, flags: string): boolean {
  try {
    new RegExp(pattern, flags)
    return true
  } catch {
    return false
  }
}

/** A part of the pattern: where it may begin and end, and whether it may be empty. */
type Part = { readonly first: readonly number[]; readonly last: readonly number[]; readonly isEmpty: boolean }
type Automaton = {
  readonly follow: readonly ReadonlySet<number>[]
  /** Of each position a regular expression for its character. */
  readonly sources: readonly string[]
  /** Steps that two repetitions allow. */
  readonly doubled: readonly (readonly [number, number])[]
}

const nothing: Part = { first: [], last: [], isEmpty: true }
const anything = '[^]'

/** Of a pattern that compiles. */
function automatonOf(pattern: string, isUnicode: boolean, budget: PatternBudget): Automaton {
  const follow: Set<number>[] = []
  const sources: string[] = []
  const doubled: [number, number][] = []
  let at = 0

  const link = (from: readonly number[], to: readonly number[]): void => {
    for (const one of from)
      for (const next of to) {
        spend(budget)
        if (follow[one]?.has(next)) doubled.push([one, next])
        follow[one]?.add(next)
      }
  }
  const position = (source: string): Part => {
    if (sources.length >= maxPositions) throw new TooLarge()
    const here = sources.push(source) - 1
    follow.push(new Set())
    return { first: [here], last: [here], isEmpty: false }
  }
  const joined = (one: Part, next: Part): Part => {
    link(one.last, next.first)
    return {
      first: one.isEmpty ? [...one.first, ...next.first] : one.first,
      last: next.isEmpty ? [...one.last, ...next.last] : next.last,
      isEmpty: one.isEmpty && next.isEmpty,
    }
  }
  const looped = (part: Part): Part => {
    link(part.last, part.first)
    return part
  }
  const alternatives = (): Part => {
    let all = sequence()
    while (pattern[at] === '|') {
      at += 1
      const other = sequence()
      all = {
        first: [...all.first, ...other.first],
        last: [...all.last, ...other.last],
        isEmpty: all.isEmpty || other.isEmpty,
      }
    }
    return all
  }
  const sequence = (): Part => {
    let whole = nothing
    while (at < pattern.length && pattern[at] !== '|' && pattern[at] !== ')') whole = joined(whole, repeated())
    return whole
  }
  const repeated = (): Part => {
    const from = at
    let part = atom()
    const count = readCount()
    if (count === null) return part
    const behind = at
    const again = (): Part => {
      at = from
      return atom()
    }
    const { min, max } = count
    const isOpen = max !== min && max > maxCopies
    const needed = Math.min(min, maxCopies)
    if (max === 0) part = nothing
    else if (needed === 0) part = { ...(isOpen ? looped(part) : part), isEmpty: true }
    else {
      for (let copies = 1; copies < needed; copies += 1) part = joined(part, again())
      if (isOpen) part = joined(part, { ...looped(again()), isEmpty: true })
    }
    for (let copies = Math.max(1, needed); !isOpen && copies < Math.min(max, maxCopies); copies += 1)
      part = joined(part, { ...again(), isEmpty: true })
    at = behind
    return part
  }
  const readCount = (): { readonly min: number; readonly max: number } | null => {
    const [written, sign, least, comma, most] = /^(?:([*+?])|\{(\d+)(,)?(\d+)?\})\??/.exec(pattern.slice(at)) ?? []
    if (written === undefined) return null
    at += written.length
    if (sign !== undefined) return { min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Infinity }
    if (comma === undefined) return { min: Number(least), max: Number(least) }
    return { min: Number(least), max: most === undefined ? Infinity : Number(most) }
  }
  const take = (shape: RegExp): string => {
    const [found = ''] = shape.exec(pattern.slice(at)) ?? []
    at += found.length
    return found
  }
  const group = (): Part => {
    const opening = take(/^\((?:\?(?:<?[=!]|<[^>]*>|[a-z-]*:))?/)
    const inside = alternatives()
    at += 1
    // What is looked at beside the text is looked at by itself.
    return /^\(\?<?[=!]/.test(opening) ? nothing : inside
  }
  const atom = (): Part => {
    spend(budget)
    const character = pattern[at]
    if (character === '(') return group()
    if (take(/^(?:[$^]|\\[bB])/) !== '') return nothing
    if (character === '[') return position(take(/^\[(?:\\[^]|[^\]\\])*\]/))
    if (take(/^\\(?:[1-9]\d*|k<[^>]*>)/) !== '') return position(anything)
    if (character === '\\')
      return position(take(isUnicode ? unicodeEscape : /^\\(?:u[\da-f]{4}|x[\da-f]{2}|c[a-z]|[^])/i))
    const plain = take(isUnicode ? /^[^]/u : /^[^]/)
    return position(plain === '.' ? plain : `[${plain.replace(/[\\\]^-]/, '\\$&')}]`)
  }
  alternatives()
  return { follow, sources, doubled }
}

const unicodeEscape = /^\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[\da-f]{4}(?:\\u[\da-f]{4})?|x[\da-f]{2}|c[a-z]|[^])/iu

/** A look at one character is so much less than a step. */
const looksPerStep = 4

const samples = 'azAZ09_ \t\n\r-.,:;/@"\'éßЖ中\u{1f600}'

/** Whether there is a character for both positions: of those that the pattern names, their neighbours, and some of every kind. */
function meetingOf(
  sources: readonly string[],
  flags: string,
  budget: PatternBudget,
): (one: number, other: number) => boolean {
  const named = [...new Set(sources.join(''))].flatMap((character) => {
    const code = character.codePointAt(0) ?? 0
    return [code - 1, code, code + 1].filter((near) => near >= 0).map((near) => String.fromCodePoint(near))
  })
  const characters = [...new Set([...Array.from(samples), ...named])]
  const known = new Map<string, ReadonlySet<string>>()
  const charactersOf = (source = ''): ReadonlySet<string> => {
    const before = known.get(source)
    if (before) return before
    spend(budget, characters.length / looksPerStep)
    const shape = new RegExp(`^${source}$`, flags)
    const found = new Set(characters.filter((character) => shape.test(character)))
    known.set(source, found)
    return found
  }
  return (one, other) =>
    one === other ||
    sources[one] === sources[other] ||
    !charactersOf(sources[one]).isDisjointFrom(charactersOf(sources[other]))
}

type Looked = Pick<Automaton, 'follow' | 'doubled'> & {
  readonly meet: (one: number, other: number) => boolean
  readonly budget: PatternBudget
}

function isAmbiguous({ follow, doubled, meet, budget }: Looked): boolean {
  const circleOf = circlesOf(follow)
  const isInCircle = (one: number, next: number): boolean => circleOf[one] !== null && circleOf[one] === circleOf[next]
  if (doubled.some(([one, next]) => isInCircle(one, next))) return true
  const size = follow.length
  const pairOf = (one: number, other: number): number => Math.min(one, other) * size + Math.max(one, other)
  const before = new Map<number, number[]>()
  const seen = new Set<number>()
  const waiting: number[] = []
  for (let one = 0; one < size; one += 1) if (circleOf[one] !== null) waiting.push(pairOf(one, one))
  for (let pair = waiting.pop(); pair !== undefined; pair = waiting.pop()) {
    if (seen.has(pair)) continue
    seen.add(pair)
    const [one, other] = [Math.floor(pair / size), pair % size]
    for (const next of follow[one] ?? [])
      for (const beside of follow[other] ?? []) {
        spend(budget)
        if (!isInCircle(one, next) || !isInCircle(other, beside) || !meet(next, beside)) continue
        const reached = pairOf(next, beside)
        before.set(reached, [...(before.get(reached) ?? []), pair])
        waiting.push(reached)
      }
  }
  // Back from where both ways are at the same place: where they parted, and met again, there are two.
  const back = new Set<number>()
  const from = [...seen].filter((pair) => Math.floor(pair / size) === pair % size)
  for (let pair = from.pop(); pair !== undefined; pair = from.pop()) {
    spend(budget)
    if (back.has(pair)) continue
    back.add(pair)
    if (Math.floor(pair / size) !== pair % size) return true
    from.push(...(before.get(pair) ?? []))
  }
  return false
}

function spend(budget: PatternBudget, steps = 1): void {
  budget.steps -= steps
  if (budget.steps < 0) throw new TooLarge()
}

/** Of each position the circle that it is part of; null: none, no text leads from it back to it (Kosaraju). */
function circlesOf(follow: Automaton['follow']): (number | null)[] {
  const before = follow.map((): number[] => [])
  for (const [one, next] of follow.entries()) for (const other of next) before[other]?.push(one)
  const [seen, order]: [Set<number>, number[]] = [new Set(), []]
  const visit = (one: number): void => {
    if (seen.has(one)) return
    seen.add(one)
    follow[one]?.forEach(visit)
    order.push(one)
  }
  for (const one of follow.keys()) visit(one)
  const circleOf = new Map<number, number>()
  const gather = (one: number, circle: number): void => {
    if (circleOf.has(one)) return
    circleOf.set(one, circle)
    for (const former of before[one] ?? []) gather(former, circle)
  }
  for (const one of order.toReversed()) gather(one, one)
  const sizes = new Map<number, number>()
  for (const circle of circleOf.values()) sizes.set(circle, (sizes.get(circle) ?? 0) + 1)
  return follow.map((next, one) => {
    const circle = circleOf.get(one) ?? one
    return next.has(one) || (sizes.get(circle) ?? 0) > 1 ? circle : null
  })
}
