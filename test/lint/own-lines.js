/**
 * Owns the lint rule on the length of functions: a function has at most so many lines of its own. Lines of the functions inside it are theirs,
 * so a factory may hold its closures together, while each of them stays short. Blank lines and comments do not count.
 */

const ownLines = {
  meta: { type: 'suggestion', schema: [{ type: 'object', properties: { max: { type: 'integer' } } }] },
  create(context) {
    const max = context.options[0]?.max ?? 60
    const source = context.sourceCode
    /** Functions that are open, outermost first: where each begins, and the lines that those inside it own. */
    const open = []
    const counted = linesWithCode(source)

    const begin = () => open.push({ inner: new Set() })
    const end = (node) => {
      const { inner } = open.pop()
      const all = []
      for (let line = node.loc.start.line; line <= node.loc.end.line; line++) if (counted.has(line)) all.push(line)
      const own = all.filter((line) => !inner.has(line))
      if (own.length > max)
        context.report({ node, message: `${nameOf(node)} has ${own.length} lines of its own, at most ${max}.` })
      const around = open.at(-1)
      if (around && node.loc.end.line > node.loc.start.line) for (const line of all) around.inner.add(line)
    }
    return {
      FunctionDeclaration: begin,
      FunctionExpression: begin,
      ArrowFunctionExpression: begin,
      'FunctionDeclaration:exit': end,
      'FunctionExpression:exit': end,
      'ArrowFunctionExpression:exit': end,
    }
  },
}

function linesWithCode(source) {
  const lines = new Set()
  const comments = new Set()
  for (const { loc } of source.getAllComments())
    for (let line = loc.start.line; line <= loc.end.line; line++) comments.add(line)
  source.lines.forEach((text, at) => {
    const isComment = comments.has(at + 1) && /^\s*(?:\/\/|\/\*|\*)/.test(text)
    if (text.trim() !== '' && !isComment) lines.add(at + 1)
  })
  return lines
}

const nameOf = (node) => node.id?.name ?? node.parent?.id?.name ?? node.parent?.key?.name ?? 'A function'

// oxlint loads a plugin by its default export.
const plugin = { meta: { name: 'parley' }, rules: { 'own-lines': ownLines } }
export default plugin
