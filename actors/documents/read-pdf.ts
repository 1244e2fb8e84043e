/** Owns how a PDF becomes Markdown: the lines of its pages in their order, put together to paragraphs, and headings by the size of their letters. */
import { getDocumentProxy } from 'unpdf'
import { isPdf } from './decode-text.ts'
import { Unreadable } from './unreadable.ts'

type Line = { text: string; readonly size: number; readonly y: number; readonly isFirst: boolean }

/** Larger than the letters of most of the text by so much is a heading, when it is short. */
const headingSize = 1.15
const maxHeading = 120
/** Lines further apart than so many heights of their letters begin a paragraph. */
const paragraphGap = 1.6

/** Throws Unreadable. The bytes are the reader's from now on. */
export async function readPdf(bytes: Uint8Array): Promise<string> {
  if (!isPdf(bytes)) throw new Unreadable('wrong_type')
  try {
    const lines = await linesOf(bytes)
    if (lines.every(({ text }) => text.trim() === '')) throw new Unreadable('no_text')
    return textOf(lines)
  } catch (error) {
    if (error instanceof Unreadable) throw error
    const isLocked = (error as { name?: unknown } | null)?.name === 'PasswordException'
    throw new Unreadable(isLocked ? 'encrypted' : 'unreadable', error)
  }
}

async function linesOf(bytes: Uint8Array): Promise<Line[]> {
  const document = await getDocumentProxy(bytes, { verbosity: 0, useSystemFonts: false })
  const lines: Line[] = []
  for (let number = 1; number <= document.numPages; number += 1) {
    const page = await document.getPage(number)
    const { items } = await page.getTextContent()
    let isOpen = false
    let isFirst = true
    for (const item of items) {
      // The others mark where structure begins and ends.
      if (!('str' in item)) continue
      const [, , skew = 0, height = 0, , y = 0] = item.transform as number[]
      const last = lines.at(-1)
      const size = Math.hypot(skew, height)
      if (isOpen && last && Math.abs(last.y - y) < Math.max(1, last.size / 2)) last.text += item.str
      else if (item.str.trim() !== '') {
        lines.push({ text: item.str, size, y, isFirst })
        isFirst = false
        isOpen = true
      }
      if (item.hasEOL) isOpen = false
    }
    page.cleanup()
  }
  await document.loadingTask.destroy()
  return lines
}

function textOf(lines: readonly Line[]): string {
  const body = bodySizeOf(lines)
  const out: string[] = []
  let before: Line | null = null
  for (const line of lines) {
    const text = line.text.replace(/\s+/g, ' ').trim()
    const isHeading = line.size >= body * headingSize && text.length <= maxHeading && /\p{L}/u.test(text)
    const wasHeading: boolean = before !== null && out.at(-1)?.startsWith('# ') === true
    const isApart = before === null || isHeading || wasHeading || isNewParagraph(before, line)
    if (isHeading && wasHeading && before?.size === line.size && !line.isFirst) out[out.length - 1] += ` ${text}`
    else if (isHeading) out.push('', `# ${text}`)
    else if (isApart) out.push('', text)
    // A word that is broken at the end of its line.
    else if (/\p{L}-$/u.test(out.at(-1) ?? '') && /^\p{Ll}/u.test(text))
      out[out.length - 1] = (out.at(-1) ?? '').slice(0, -1) + text
    else out.push(text)
    before = line
  }
  return out.join('\n').trim()
}

const isNewParagraph = (before: Line, line: Line): boolean => {
  // A page that ends within a sentence goes on with it.
  if (line.isFirst) return /[.!?:]$/.test(before.text.trim())
  return Math.abs(before.y - line.y) > paragraphGap * Math.max(before.size, line.size, 1)
}

/** Of most of the letters. */
function bodySizeOf(lines: readonly Line[]): number {
  const letters = new Map<number, number>()
  for (const { text, size } of lines) {
    const rounded = Math.round(size * 2) / 2
    letters.set(rounded, (letters.get(rounded) ?? 0) + text.length)
  }
  const [[size] = [0]] = [...letters].toSorted(([, one], [, other]) => other - one)
  return Math.max(1, size)
}
