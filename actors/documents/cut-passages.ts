/**
 * Owns how a text becomes passages: paragraphs that belong together, of a size that a caller can be read, each with the headings it stands below.
 * Nothing of the text is lost, and nothing is added to it.
 */
import type { WrittenType } from '../../model/document.ts'
import type { PassageText } from '../../store/passages.ts'

/** Paragraphs below one heading are joined up to this, in characters. */
const wanted = 600
/** A paragraph as long as this is cut. With its headings a passage has 1,200 at most. */
const most = 900
/** A line as short as this, without a full stop, may be a headline. */
const maxHeadline = 80
const maxHeading = 120
const maxHeadings = 2

type Block = { readonly level: number; readonly text: string }

export function cutPassages(text: string, type: WrittenType): PassageText[] {
  const blocks = type === 'mdoc' ? markdownBlocks(text) : plainBlocks(text)
  const headings: Block[] = []
  const passages: PassageText[] = []
  let paragraphs: string[] = []
  /** No paragraph has stood below the last heading yet. */
  let isBare = false

  const write = (texts: readonly string[], below: readonly Block[]): void => {
    const heading = below.slice(-maxHeadings).map((block) => block.text.slice(0, maxHeading).toWellFormed())
    for (const text of piecesOf(texts)) passages.push({ heading: heading.join('\n'), text })
  }
  const leave = (level: number): void => {
    write(paragraphs, headings)
    paragraphs = []
    // A heading that nothing stands below is all there is of its section.
    const last = headings.at(-1)
    if (isBare && last && last.level >= level) write([last.text], headings.slice(0, -1))
    while ((headings.at(-1)?.level ?? 0) >= level) headings.pop()
    isBare = false
  }
  for (const { level, text: content } of blocks) {
    if (level === 0) {
      paragraphs.push(content)
      isBare = false
      continue
    }
    leave(level)
    headings.push({ level, text: content })
    isBare = true
  }
  leave(1)
  return passages
}

/** What stands between blank lines. Splits in one go over the text. */
const paragraphsOf = (text: string): string[] =>
  text
    .split(/\r?\n[ \t\r]*\n\s*/)
    .map((paragraph) => paragraph.trim())
    .filter((paragraph) => paragraph !== '')

/** A short line in front of something longer is its headline. */
function plainBlocks(text: string): Block[] {
  const paragraphs = paragraphsOf(text)
  return paragraphs.map((paragraph, at) => {
    const next = paragraphs[at + 1]
    return { level: next !== undefined && isHeadline(paragraph) && !isHeadline(next) ? 1 : 0, text: paragraph }
  })
}

const isHeadline = (paragraph: string): boolean =>
  paragraph.length <= maxHeadline && !/[\n.!?;,…。]$|\n/.test(paragraph) && /\p{L}/u.test(paragraph)

/** CommonMark: ATX and setext headings; what is fenced is left alone. */
function markdownBlocks(text: string): Block[] {
  const blocks: Block[] = []
  let lines: string[] = []
  let fence: string | null = null
  const close = (): void => {
    const paragraph = lines.join('\n').trim()
    if (paragraph !== '') blocks.push({ level: 0, text: paragraph })
    lines = []
  }
  for (const line of text.split(/\r\n|\n|\r/)) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1] ?? null
    if (fence !== null || mark !== null) {
      lines.push(line)
      if (fence === null) fence = mark
      else if (mark !== null && mark.startsWith(fence)) fence = null
      continue
    }
    const [, marks, title = ''] = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/.exec(line) ?? []
    const underline = lines.length === 1 ? /^ {0,3}(?:(=+)|-+)[ \t]*$/.exec(line) : null
    if (marks !== undefined) {
      close()
      const plain = title.replace(/[ \t]+#+[ \t]*$/, '').trim()
      if (plain !== '') blocks.push({ level: marks.length, text: plain })
    } else if (underline !== null && (lines[0] ?? '').trim() !== '') {
      blocks.push({ level: underline[1] === undefined ? 2 : 1, text: (lines[0] ?? '').trim() })
      lines = []
    } else if (line.trim() === '') close()
    else lines.push(line)
  }
  close()
  return blocks
}

/** The parts of a paragraph that was cut stay by themselves. */
function piecesOf(paragraphs: readonly string[]): string[] {
  const pieces: string[] = []
  let isOpen = false
  for (const paragraph of paragraphs) {
    const parts = partsOf(paragraph)
    const [first = ''] = parts
    const last = pieces.at(-1) ?? ''
    if (isOpen && parts.length === 1 && last.length + first.length < wanted)
      pieces[pieces.length - 1] = `${last}\n${first}`
    else pieces.push(...parts)
    isOpen = parts.length === 1
  }
  return pieces
}

/** A paragraph that is too long: behind a sentence, else between words, else anywhere but within a character. */
function partsOf(paragraph: string): string[] {
  if (paragraph.length <= most) return [paragraph]
  const parts: string[] = []
  for (let at = 0; at < paragraph.length;) {
    const room = paragraph.slice(at, at + most)
    const length = at + most >= paragraph.length ? room.length : cutOf(room)
    const part = room.slice(0, length).trim()
    if (part !== '') parts.push(part)
    at += length
  }
  return parts
}

function cutOf(room: string): number {
  const half = Math.floor(room.length / 2)
  const tail = room.slice(half)
  const sentence = Math.max(...['. ', '! ', '? ', '.\n', '\n'].map((end) => tail.lastIndexOf(end) + end.length - 1))
  if (sentence > 2) return half + sentence
  const blank = tail.search(/\s\S*$/)
  if (blank > 0) return half + blank
  return /[\ud800-\udbff]$/.test(room) ? room.length - 1 : room.length
}
