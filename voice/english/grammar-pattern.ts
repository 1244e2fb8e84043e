/**
 * Owns patterns of words, such as all ways to say a date, and the graph that a recogniser walks for one: no two arcs of a state have the same
 * word, no arc is empty, none leads back, and what ends alike is said once.
 */

/** A string is its words one after another; the empty one is nothing. */
export type Pattern = string | { readonly sequence: readonly Pattern[] } | { readonly oneOf: readonly Pattern[] }

export const sequence = (...parts: readonly Pattern[]): Pattern => ({ sequence: parts })
export const oneOf = (...ways: readonly Pattern[]): Pattern => ({ oneOf: ways })
export const maybe = (pattern: Pattern): Pattern => oneOf('', pattern)

export type WordState = {
  /** What was said so far is a whole answer. */
  readonly isEnd: boolean
  /** The number of the next state by the word that leads there. */
  readonly arcs: ReadonlyMap<string, number>
}
/** The last state is the start: every arc leads to a state of a lower number. */
export type WordGraph = readonly WordState[]

/** How far words have come in a graph. */
export type Walk = 'astray' | 'under way' | 'whole, may go on' | 'whole'

const maxStates = 1000

/** Throws for a pattern that makes more states than any recogniser should be given. */
export function graphOf(pattern: Pattern): WordGraph {
  const loose = createLooseGraph()
  const last = loose.end()
  const first = loose.before(pattern, last)
  const states: WordState[] = []
  const known = new Map<string, number>()
  const bySet = new Map<string, number>()
  let met = 0

  const stateOf = (heads: ReadonlySet<number>): number => {
    const all = loose.reachable(heads)
    const name = [...all].toSorted((one, other) => one - other).join(' ')
    const before = bySet.get(name)
    if (before !== undefined) return before
    if (++met > maxStates) throw new Error(`a pattern of words has more than ${maxStates} states`)
    const arcs = new Map([...loose.wordsFrom(all)].map(([word, next]) => [word, stateOf(next)]))
    const isEnd = all.has(last)
    const shape = `${isEnd}:${[...arcs].toSorted(([one], [other]) => (one < other ? -1 : 1)).join(';')}`
    const state = known.get(shape) ?? states.push({ isEnd, arcs }) - 1
    known.set(shape, state)
    bySet.set(name, state)
    return state
  }
  stateOf(new Set([first]))
  return states
}

export function walk(graph: WordGraph, words: readonly string[]): Walk {
  let state = graph.at(-1)
  for (const word of words) {
    const next = state?.arcs.get(word)
    if (next === undefined) return 'astray'
    state = graph[next]
  }
  if (state?.isEnd !== true) return 'under way'
  return state.arcs.size === 0 ? 'whole' : 'whole, may go on'
}

/** As the pattern says it, jumps and all; made from its end, so that what ends alike in the pattern is made once. */
function createLooseGraph() {
  const nodes: { readonly jumps: readonly number[]; readonly arcs: readonly (readonly [string, number])[] }[] = []
  const made = new Map<Pattern, Map<number, number>>()
  const add = (node: (typeof nodes)[number]): number => nodes.push(node) - 1
  const before = (pattern: Pattern, next: number): number => {
    const known = made.get(pattern) ?? new Map<number, number>()
    made.set(pattern, known)
    const node = known.get(next) ?? make(pattern, next)
    known.set(next, node)
    return node
  }
  const make = (pattern: Pattern, next: number): number => {
    if (typeof pattern === 'string')
      return pattern
        .split(' ')
        .reduceRight((to, word) => (word === '' ? to : add({ jumps: [], arcs: [[word, to]] })), next)
    if ('sequence' in pattern) return pattern.sequence.reduceRight((to: number, part) => before(part, to), next)
    return add({ jumps: pattern.oneOf.map((way) => before(way, next)), arcs: [] })
  }
  const reachable = (heads: ReadonlySet<number>): ReadonlySet<number> => {
    const all = new Set(heads)
    for (const node of all) for (const jump of nodes[node]?.jumps ?? []) all.add(jump)
    return all
  }
  const wordsFrom = (all: ReadonlySet<number>): ReadonlyMap<string, ReadonlySet<number>> => {
    const byWord = new Map<string, Set<number>>()
    for (const node of all)
      for (const [word, to] of nodes[node]?.arcs ?? []) byWord.set(word, (byWord.get(word) ?? new Set()).add(to))
    return byWord
  }
  return { end: () => add({ jumps: [], arcs: [] }), before, reachable, wordsFrom }
}
