/**
 * Owns how a page becomes Markdown: its words, headings, lists and table cells. Scripts, styles and everything else that nobody reads are left out;
 * nothing is fetched and nothing is run. Takes one way through the page, however it is written.
 */
import { decodeEntities } from './html-entities.ts'

/** Content and all. */
const dropped = new Set([
  'script',
  'style',
  'template',
  'noscript',
  'iframe',
  'object',
  'svg',
  'math',
  'head',
  'select',
  'textarea',
  'canvas',
])
const headings: Readonly<Record<string, string>> = {
  h1: '# ',
  h2: '## ',
  h3: '### ',
  h4: '#### ',
  h5: '##### ',
  h6: '###### ',
}
const paragraphs = new Set(
  'address article aside blockquote body dd details div dl dt fieldset figcaption figure footer form header hr html main nav ol p pre section summary table ul'.split(
    ' ',
  ),
)
const lines = new Set(['br', 'tr', 'li', 'caption', 'thead', 'tbody', 'tfoot', 'option', 'label'])

type Tag = { readonly name: string; readonly closes: boolean; readonly end: number }

export function readHtml(html: string): string {
  const page = bodyOf(html)
  const out: string[] = []
  const text = (raw: string): void => {
    if (raw !== '') out.push(escapeHash(decodeEntities(raw).replace(/\s+/g, ' '), out))
  }
  let at = 0
  while (at < page.length) {
    const open = page.indexOf('<', at)
    if (open < 0) break
    text(page.slice(at, open))
    const tag = tagAt(page, open)
    if (tag === null) {
      // A sign, and no tag.
      text('<')
      at = open + 1
      continue
    }
    at = tag.end
    if (!tag.closes && dropped.has(tag.name)) at = behind(page, tag)
    else out.push(breakOf(tag))
  }
  text(page.slice(at))
  return tidied(out.join(''))
}

/** What of the page comes before it is told to browsers only; a page without a body is all body. */
function bodyOf(html: string): string {
  const start = html.search(/<body[\s>/]/i)
  return start < 0 ? html : html.slice(start)
}

/** As the page declares it, in its first kilobyte (HTML Living Standard 13.2.3.2). */
export const declaredEncoding = (head: string): string | null =>
  /<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})/i.exec(head.slice(0, 1024))?.[1] ?? null

/** Null: what stands there begins no tag. One that does not end is the rest of the page. */
function tagAt(page: string, open: number): Tag | null {
  const next = page.charAt(open + 1)
  if (next === '!' || next === '?') {
    const isComment = page.startsWith('<!--', open)
    return { name: '!', closes: true, end: endOf(page, isComment ? '-->' : '>', open + 2) }
  }
  const closes = next === '/'
  const name = /^[a-z][a-z0-9:-]{0,30}/i.exec(page.slice(open + (closes ? 2 : 1), open + 40))?.[0]
  if (name === undefined) return null
  return { name: name.toLowerCase(), closes, end: endOfTag(page, open + 1 + name.length) }
}

function endOf(page: string, sign: string, from: number): number {
  const found = page.indexOf(sign, from)
  return found < 0 ? page.length : found + sign.length
}

/** A sign within quotes ends no tag. */
function endOfTag(page: string, from: number): number {
  const signs = /["'>]/g
  signs.lastIndex = from
  for (let sign = signs.exec(page); sign !== null; sign = signs.exec(page)) {
    if (sign[0] === '>') return sign.index + 1
    const isValue = /=\s*$/.test(page.slice(Math.max(from, sign.index - 10), sign.index))
    if (!isValue) continue
    const quoted = page.indexOf(sign[0], sign.index + 1)
    if (quoted < 0) return page.length
    signs.lastIndex = quoted + 1
  }
  return page.length
}

/** Behind the end of what is left out. Elements of one name within each other end with the first of their ends: nobody reads the rest either way. */
function behind(page: string, { name, end }: Tag): number {
  if (page.slice(end - 2, end) === '/>' && name !== 'script' && name !== 'style') return end
  const close = new RegExp(`</${name}[\\s/>]`, 'gi')
  close.lastIndex = end
  const found = close.exec(page)
  return found === null ? page.length : endOf(page, '>', found.index)
}

function breakOf({ name, closes }: Tag): string {
  const heading = headings[name]
  if (heading !== undefined) return closes ? '\n\n' : `\n\n${heading}`
  if (paragraphs.has(name)) return '\n\n'
  if (name === 'li') return closes ? '\n' : '\n- '
  if (lines.has(name)) return closes ? '' : '\n'
  if ((name === 'td' || name === 'th') && closes) return ' | '
  return ''
}

/** What a page says is no heading because it begins with a sign. */
const escapeHash = (text: string, before: readonly string[]): string =>
  /^ ?#{1,6}(?: |$)/.test(text) && /(?:^|\n)[\s-]*$/.test(before.at(-1) ?? '') ? text.replace('#', '\u2060#') : text

function tidied(text: string): string {
  return text
    .split('\n')
    .map((line) => line.replace(/(?: \| )+\s*$/, '').trim())
    .map((line) => (/^(?:#{1,6}|-)$/.test(line) ? '' : line))
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}
