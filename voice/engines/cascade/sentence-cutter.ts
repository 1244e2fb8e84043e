/**
 * Owns the cutting of a text, as it comes, into what is spoken one after another: sentences of any language, and parts of overlong ones. A sentence is
 * known to be over when the next one begins. Pieces keep the space behind them: together they are the text.
 */

export type SentenceCutter = {
  /** What is complete by now. */
  push(text: string): string[]
  /** The rest: no more text comes. */
  end(): string[]
}

const maxPiece = 300
/** Titles and the like of European languages: a full stop after one ends no sentence. */
const abbreviation =
  /(?:^|[\s("'„“«])(?:mr|mrs|ms|dr|prof|st|sr|sra|mme|mlle|hr|fr|no|nr|núm|tel|vs|ca|bzw|inkl|zzgl|abs|art|str|approx|\p{L}|(?:\p{L}\.)+\s?\p{L})\.\s*$/iu
/** `am 3. Mai`: a number with a full stop may be an ordinal, and a date. */
const ordinal = /(?:^|\s)\p{N}{1,2}\.\s*$/u
/** The address of a link whose end has not come. */
const openLink = /\]\([^)\s]*$/
const sayable = /[\p{L}\p{N}]/u

export function createSentenceCutter(language: string): SentenceCutter {
  const segmenter = segmenterOf(language)
  let buffer = ''

  const cut = (isWhole: boolean): string[] => {
    const pieces: string[] = []
    let piece = ''
    for (const { segment } of segmenter.segment(buffer)) {
      if (piece !== '' && endsSentence(piece)) {
        pieces.push(piece)
        piece = ''
      }
      piece += segment
    }
    if (isWhole && piece !== '') pieces.push(piece)
    buffer = isWhole ? '' : piece
    const parts = pieces.flatMap((whole) => partsOf(whole))
    // A sentence that does not end is said as far as it goes.
    if (buffer.length > maxPiece) {
      const ready = partsOf(buffer)
      buffer = ready.pop() ?? ''
      parts.push(...ready)
    }
    return parts.filter((part) => sayable.test(part))
  }
  return {
    push(text) {
      buffer += text
      return cut(false)
    },
    end: () => cut(true),
  }
}

export function piecesOf(text: string, language: string): string[] {
  const cutter = createSentenceCutter(language)
  return [...cutter.push(text), ...cutter.end()]
}

const endsSentence = (piece: string): boolean =>
  sayable.test(piece) && !abbreviation.test(piece) && !ordinal.test(piece) && !openLink.test(piece)

function segmenterOf(language: string): Intl.Segmenter {
  try {
    return new Intl.Segmenter(language, { granularity: 'sentence' })
  } catch {
    // Not a language that anybody has written down: sentences end alike nearly everywhere.
    return new Intl.Segmenter('en', { granularity: 'sentence' })
  }
}

/** Cut behind a comma of any script, or else at a space, or else where it is too long. */
function partsOf(piece: string): string[] {
  const parts: string[] = []
  let rest = piece
  while (rest.length > maxPiece) {
    const head = rest.slice(0, maxPiece)
    const comma = Math.max(
      ...[...head.matchAll(/[,;:]\s|[，、；：،؛]/gu)].map((match) => match.index + match[0].length),
      0,
    )
    const space = head.lastIndexOf(' ') + 1
    const at = comma > maxPiece / 3 ? comma : space || wellFormedLength(head)
    parts.push(rest.slice(0, at))
    rest = rest.slice(at)
  }
  return rest === '' ? parts : [...parts, rest]
}

/** Not between the halves of a surrogate pair. */
const wellFormedLength = (head: string): number => (head.isWellFormed() ? head.length : head.length - 1)
