/**
 * Owns the parting of a model's thoughts from its words, where an endpoint gives both as one text: what stands in tags such as `<think>` is nothing to
 * be said, nor is a call of a tool that was written out. Pure; the tags may come in any pieces.
 */

export type WordFilter = {
  /** Of this text, and of what was held back before, the words. */
  push(text: string): string
  /** The rest: no more text comes. */
  end(): string
  /** Thoughts ended that had not begun: what came before was taken for words, and was none. */
  beganInside(): boolean
}

const names = 'think|thinking|thought|reasoning|reflection|tool_call|function_call'
const tag = new RegExp(`<(/?)(${names})>`, 'i')
const beginning = /<\/?[a-z_]{0,13}$/i
/** Thoughts are not kept; but when all that came turns out to have been words, so much of it is said. */
const maxKept = 6_000

type State = { readonly is: 'words' | 'unknown' } | { readonly is: 'hidden'; readonly tag: string }

/** `beginsInside`: the model is known to begin with its thoughts, without a tag. */
export function createWordFilter(beginsInside: boolean): WordFilter {
  let state: State = { is: beginsInside ? 'unknown' : 'words' }
  let kept = ''
  let rest = ''
  let beganInside = false

  const take = (text: string): string => {
    if (state.is === 'unknown') kept = (kept + text).slice(0, maxKept)
    return state.is === 'words' ? text : ''
  }
  const letGo = (): string => {
    const words = kept
    kept = ''
    return words
  }
  const begin = (name: string): string => {
    if (state.is !== 'hidden') state = { is: 'hidden', tag: name }
    return letGo()
  }
  const end = (name: string): void => {
    if (state.is === 'hidden' && state.tag !== name) return
    beganInside ||= state.is === 'words'
    kept = ''
    state = { is: 'words' }
  }
  return {
    push(text) {
      let words = ''
      rest += text
      for (let match = tag.exec(rest); match; match = tag.exec(rest)) {
        const [whole, slash, name = ''] = match
        words += take(rest.slice(0, match.index))
        rest = rest.slice(match.index + whole.length)
        if (slash === '') words += begin(name.toLowerCase())
        else end(name.toLowerCase())
      }
      const open = beginning.exec(rest)?.index ?? rest.length
      words += take(rest.slice(0, open))
      rest = rest.slice(open)
      return words
    },
    end() {
      const words = letGo() + take(rest)
      rest = ''
      return state.is === 'unknown' ? words + letGo() : words
    },
    beganInside: () => beganInside,
  }
}
