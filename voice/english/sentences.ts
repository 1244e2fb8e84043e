/** Owns the cutting of a text into pieces that are spoken one after another: the first sound is ready after the first piece. */

const maxPiece = 220

/** Sentences, and the parts of overlong ones. Letters the English voices do not know are made plain; the rest is left out. */
export function sentencesOf(text: string): string[] {
  const sentences = plainLetters(text)
    .split(/(?<=[.!?]["')]?)\s+(?=["'(]?[A-Z0-9])/)
    .map((sentence) => sentence.trim())
  return mended(sentences)
    .flatMap(cut)
    .filter((piece) => /[A-Za-z0-9]/.test(piece))
}

const plainLetters = (text: string): string =>
  text
    .normalize('NFKD')
    .replace(/[‘’]/g, "'")
    .replace(/[“”]/g, '"')
    .replace(/[–—]/g, ', ')
    .replace(/…/g, '...')
    .replace(/[^\x20-\x7e\n]/g, '')
    .replace(/\s+/g, ' ')
    .trim()

/** A full stop after a title or a single initial ends no sentence, unless that is long enough. */
function mended(sentences: readonly string[]): string[] {
  const whole: string[] = []
  for (const sentence of sentences) {
    const last = whole.at(-1)
    if (last !== undefined && last.length <= maxPiece && /(^|\s)(mr|mrs|ms|dr|st|no|vs|[a-z])\.$/i.test(last))
      whole[whole.length - 1] = `${last} ${sentence}`
    else whole.push(sentence)
  }
  return whole
}

function cut(sentence: string): string[] {
  const pieces: string[] = []
  let rest = sentence
  while (rest.length > maxPiece) {
    const head = rest.slice(0, maxPiece)
    const comma = Math.max(head.lastIndexOf(', '), head.lastIndexOf('; '), head.lastIndexOf(': ')) + 1
    const at = comma > maxPiece / 3 ? comma : Math.max(head.lastIndexOf(' '), 0) || maxPiece
    pieces.push(rest.slice(0, at).trim())
    rest = rest.slice(at).trim()
  }
  return [...pieces, rest]
}
