/** Owns how HTML is written: a template in which everything that is put in is escaped, unless it is HTML of this template itself. */

const made = Symbol('html')

/** Only `html` makes one. */
export type Html = { readonly [made]: string }

/** Null, undefined and false are nothing; of a list each. */
type Piece = Html | string | number | null | undefined | false | readonly Piece[]

/**
 * Values stand between tags, or in an attribute within double quotes: anywhere else they could not be escaped, so an attribute without quotes
 * throws. Addresses in attributes are the caller's to check.
 */
export function html(texts: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  const written = texts.map((text, index) => {
    if (index < pieces.length && text.endsWith('=')) throw new TypeError('an attribute without quotes')
    return index < pieces.length ? text + textOf(pieces[index]) : text
  })
  return { [made]: written.join('') }
}

export const htmlTextOf = (written: Html): string => written[made]

function textOf(piece: Piece): string {
  if (piece === null || piece === undefined || piece === false) return ''
  if (typeof piece === 'string') return escaped(piece)
  if (typeof piece === 'number') return String(piece)
  if (made in piece) return piece[made]
  return piece.map(textOf).join('')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  // Old parsers took it for a quote.
  '`': '&#96;',
}

const escaped = (text: string): string => text.replace(/[&<>"'`]/g, (character) => entities[character] ?? '')
