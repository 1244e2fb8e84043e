/**
 * Owns what a voice makes of a written sentence: marks of Markdown, tags and pictures are left out, and what cannot be said or stored. Pure. Words that
 * are to be said word for word do not come here.
 */

const picture = String.raw`(?:\p{Emoji_Presentation}|\p{Extended_Pictographic}\uFE0F|[\u2600-\u27BF])`
const more = String.raw`(?:\p{Emoji_Modifier}|\uFE0F|\u200D\p{Extended_Pictographic})*`

const leftOut: readonly (readonly [RegExp, string])[] = [
  // Links and images have a text.
  [/!?\[([^\]\n]*)\]\([^)\n]*\)?/g, '$1'],
  [/<\/?(?:br|p|b|i|u|em|strong|ul|ol|li|div|span|code|speak|break)\b[^<>]*>/gi, ' '],
  // Headings, lists and quotations, where a line begins.
  [/^[ \t]*(?:(?:#{1,6}|[-*+•‣▪]|>)[ \t]+)+/gm, ''],
  [/`+|\*{2,}|_{2,}|~{2,}/g, ''],
  // Emphasis of a word; not the sign of a multiplication, nor a name with underscores.
  [/(?<![\p{L}\p{N}])[*_](?=[\p{L}\p{N}"'“(¿¡])/gu, ''],
  [/(?<=[\p{L}\p{N}.,!?;:…"'”)])[*_](?![\p{L}\p{N}])/gu, ''],
  [new RegExp(String.raw`\s?(?:${picture}${more})+`, 'gu'), ''],
  [/[\u20E3\uFE0E\uFE0F\u200B\u2060\uFEFF]/g, ''],
  [/[\s\p{Cc}|]+/gu, ' '],
]

const sayable = /[\p{L}\p{N}]/u

/** Of one sentence; null when nothing is left that could be said. */
export function speakable(written: string): string | null {
  const text = leftOut
    .reduce((left, [mark, instead]) => left.replace(mark, instead), written.toWellFormed())
    .trimStart()
  return sayable.test(text) ? text : null
}
