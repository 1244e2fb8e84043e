/** Owns telling code from what only stands in it: comments, and what strings, templates and regular expressions contain. */

/** The same text, as long, with comments blank and every character inside strings, templates and regular expressions replaced by `_`. */
export function maskedOf(source: string): string {
  const masked: string[] = []
  /** For every `${` that is open: how many braces are open inside it. */
  const templates: number[] = []
  let at = 0
  const copy = (count: number): void => {
    masked.push(source.slice(at, at + count))
    at += count
  }
  const mask = (until: number, by: string): void => {
    masked.push(source.slice(at, until).replace(/[^\n]/g, by))
    at = until
  }
  const maskTemplate = (): void => {
    const end = endOf(source, at, /`|\$\{/y)
    mask(end, '_')
    if (source.startsWith('${', at)) {
      templates.push(0)
      copy(2)
    } else copy(1)
  }
  while (at < source.length) {
    const char = source.charAt(at)
    const depth = templates.at(-1)
    if (source.startsWith('//', at)) mask(endOf(source, at, /\n/y), ' ')
    else if (source.startsWith('/*', at)) mask(endOf(source, at + 2, /\*\//y) + 2, ' ')
    else if (char === "'" || char === '"') {
      copy(1)
      mask(endOf(source, at, char === "'" ? /['\n]/y : /["\n]/y), '_')
      copy(1)
    } else if (char === '`') {
      copy(1)
      maskTemplate()
    } else if (char === '/' && startsPattern(masked)) {
      copy(1)
      mask(endOfPattern(source, at), '_')
      copy(1)
    } else if (depth !== undefined && (char === '{' || char === '}')) {
      if (char === '}' && depth === 0) templates.pop()
      else templates[templates.length - 1] = depth + (char === '{' ? 1 : -1)
      copy(1)
      if (char === '}' && depth === 0) maskTemplate()
    } else copy(1)
  }
  return masked.join('')
}

/** Where `shape` matches first from `from` on, escaped characters skipped; the end of the text when it does not. */
function endOf(source: string, from: number, shape: RegExp): number {
  for (let at = from; at < source.length; at++) {
    shape.lastIndex = at
    if (shape.test(source)) return at
    if (source.charAt(at) === '\\') at++
  }
  return source.length
}

function endOfPattern(source: string, from: number): number {
  let inClass = false
  for (let at = from; at < source.length; at++) {
    const char = source.charAt(at)
    if (char === '\n') return at
    if (char === '\\') at++
    else if (char === '[') inClass = true
    else if (char === ']') inClass = false
    else if (char === '/' && !inClass) return at
  }
  return source.length
}

/** A slash divides after a value and opens a regular expression after anything else. */
function startsPattern(masked: readonly string[]): boolean {
  const before = masked.slice(-200).join('').trimEnd()
  return before === '' || /(?:[(,=:[!&|?{};+*%<>~^-]|\b(?:return|typeof|case|of|in|await|yield|void))$/.test(before)
}

/** Only the comments, where they stand; everything else is blank. */
export function commentsOf(source: string): string {
  const code = maskedOf(source)
  return source.replace(/[^\n]/g, (char, at: number) => (code.charAt(at) === ' ' ? char : ' '))
}
