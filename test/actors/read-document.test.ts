/** docs/contract/rest.md "Documents": how files become text and passages, and how what is no such file is told. */
import { test } from 'tap'
import { openZip } from '../../actors/documents/bounded-zip.ts'
import { createReader } from '../../actors/documents/reader.ts'
import { readDocument, type Source } from '../../actors/documents/read-document.ts'
import { Unreadable } from '../../actors/documents/unreadable.ts'
import { systemClock } from '../../app/clock.ts'
import type { DocumentType } from '../../model/document.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { docxOf, lockedPdf, ownBytes, pdfOf, wordXml, zipOf } from '../scenes/document-files.ts'

const file = (type: DocumentType, content: string | Uint8Array): Source => ({
  kind: 'file',
  type,
  bytes: ownBytes(typeof content === 'string' ? new TextEncoder().encode(content) : content),
})
const written = (type: DocumentType, text: string): Source => ({ kind: 'text', type, text })

const reasonOf = async (source: Source): Promise<string> => {
  try {
    await readDocument(source)
    return 'read'
  } catch (error) {
    if (error instanceof Unreadable) return error.reason
    throw error
  }
}
const passagesOf = async (source: Source) => (await readDocument(source)).passages

test('headings are kept with the text below them', async (t) => {
  const markdown =
    '# Shop\n\n## Opening hours\n\nFrom nine to five.\n\nOn Sundays closed.\n\n## Returns\n\nWithin thirty days.'
  t.same(await passagesOf(written('mdoc', markdown)), [
    { heading: 'Shop\nOpening hours', text: 'From nine to five.\nOn Sundays closed.' },
    { heading: 'Shop\nReturns', text: 'Within thirty days.' },
  ])
  t.same(await passagesOf(written('txt', 'Opening hours\n\nFrom nine to five, and longer in summer.')), [
    { heading: 'Opening hours', text: 'From nine to five, and longer in summer.' },
  ])
  t.same(
    await passagesOf(written('mdoc', 'Title\n=====\n\ntext\n\n```\n# no heading\n```\n\n# Last')),
    [
      { heading: 'Title', text: 'text\n```\n# no heading\n```' },
      { heading: '', text: 'Last' },
    ],
    'setext headings count, fenced lines do not, and a heading without text is not lost',
  )
})

test('a long text is cut between words, and every word of it is in a passage', async (t) => {
  const words = Array.from({ length: 3000 }, (_, at) => `word${at}`)
  for (const text of [words.join(' '), words.join('. '), words.join('\n\n')]) {
    const passages = await passagesOf(written('txt', text))
    t.same(
      passages.flatMap((passage) => `${passage.heading} ${passage.text}`.match(/word\d+/g) ?? []),
      words,
    )
    t.ok(passages.every(({ heading, text }) => heading.length + text.length <= 1_200))
  }
  const unbroken = await passagesOf(written('txt', '😀'.repeat(5_000)))
  t.equal(unbroken.map(({ text }) => text).join(''), '😀'.repeat(5_000), 'no character is cut in two')
})

test('texts are read in the encoding that they are in', async (t) => {
  const plain = 'Öffnungszeiten: täglich von neun bis fünf, außer sonntags.'
  t.equal((await readDocument(file('txt', Buffer.from(plain, 'latin1')))).text, plain, 'Latin-1')
  const text = `${plain} Čas: „denně“ 9–17.`
  const utf16 = Buffer.from(text, 'utf16le')
  const swapped = ownBytes(utf16).map((_, at) => utf16[at ^ 1] ?? 0)
  for (const [name, bytes] of Object.entries({
    'UTF-8': Buffer.from(text),
    'UTF-8 with BOM': Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)]),
    'UTF-16LE with BOM': Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]),
    'UTF-16BE with BOM': Buffer.concat([Buffer.from([0xfe, 0xff]), swapped]),
    'UTF-16LE without BOM': utf16,
    'UTF-16BE without BOM': Buffer.from(swapped),
    'a NUL in it': Buffer.from(text.replace('neun', 'ne\0un')),
  }))
    t.equal((await readDocument(file('txt', bytes))).text, text, name)
  const declared = '<meta charset="iso-8859-2"><body><p>\xa9koda</p>'
  t.equal((await readDocument(file('html', Buffer.from(declared, 'latin1')))).text, 'Škoda')
})

test('a page is read as people read it: without scripts, styles and tags', async (t) => {
  const page = `<!doctype html><html><head><title>no</title><style>p { color: red }</style></head><body onload="run()">
    <h1>Shop &amp; Caf&eacute;</h1><script>document.write('evil')</script ><p>We are <b>open</b> from 9&nbsp;to&#x20;5.<br>Daily.</p>
    <!-- hidden > text --><ul><li>Tea<li>Coffee &lt; 3 &euro;</ul><table><tr><th>Day</th><th>Time</th></tr><tr><td>Mon</td><td>9</td></tr></table>
    <a href="x" title="a > b">Link</a> 1 < 2 <svg><text>drawn</text></svg><script>never ended`
  const { text, passages } = await readDocument(file('html', page))
  t.equal(
    text,
    '# Shop & Café\n\nWe are open from 9 to 5.\nDaily.\n\n- Tea\n- Coffee < 3 €\n\nDay | Time\nMon | 9\n\nLink 1 < 2',
  )
  t.equal(passages[0]?.heading, 'Shop & Café')
})

test('hostile pages are read in one go', async (t) => {
  const many = 200_000
  const hostile = ['<', '<a ', '<a "', '<!--', '<script', '<script>', '</', '&#', '<a b="', '<p>#', '#', ' \n', '<li>']
  for (const piece of hostile) {
    const began = performance.now()
    await reasonOf(file('html', `x${piece.repeat(many / piece.length)}`))
    t.ok(performance.now() - began < 2_000, `${piece} ×${many / piece.length}`)
  }
})

test('a Word document is read with its headings', async (t) => {
  const document = wordXml([
    { text: 'Opening hours', style: 'Heading1' },
    { text: 'We are open from nine to five & on Sundays.' },
    { text: 'Holidays', style: 'Heading2' },
    { text: 'Closed.' },
  ])
  t.same(await passagesOf(file('docx', docxOf(document))), [
    { heading: 'Opening hours', text: 'We are open from nine to five & on Sundays.' },
    { heading: 'Opening hours\nHolidays', text: 'Closed.' },
  ])
})

test('a PDF is read with its headings, its paragraphs across lines', async (t) => {
  const pdf = pdfOf([
    [
      { text: 'Opening hours', size: 18 },
      { text: 'We are open from nine to five, and on Satur-', gap: 8 },
      { text: 'days until noon (by appointment).' },
      { text: 'Closed on Sundays.', gap: 14 },
    ],
    [
      { text: 'Returns', size: 18 },
      { text: 'Within thirty days of the purchase.', gap: 8 },
    ],
  ])
  t.same(await passagesOf(file('pdf', pdf)), [
    {
      heading: 'Opening hours',
      text: 'We are open from nine to five, and on Saturdays until noon (by appointment).\nClosed on Sundays.',
    },
    { heading: 'Returns', text: 'Within thirty days of the purchase.' },
  ])
})

test('what is not what it claims to be is told, and nothing of it is believed', async (t) => {
  const pdf = pdfOf([[{ text: 'Hello.' }]])
  const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13])
  const noise = Uint8Array.from({ length: 4_000 }, (_, at) => (at * 7919) % 251)
  const document = wordXml([{ text: 'Hello.' }])
  const entity = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
  const broken = docxOf(document)
  for (const [reason, source] of [
    ['wrong_type', file('docx', pdf)],
    ['wrong_type', file('pdf', docxOf(document))],
    ['wrong_type', file('txt', png)],
    ['wrong_type', file('html', pdf)],
    ['wrong_type', file('mdoc', noise)],
    ['wrong_type', file('docx', zipOf({ 'a.txt': 'a' }))],
    ['wrong_type', file('docx', 'Only a text.')],
    ['encrypted', file('pdf', lockedPdf())],
    [
      'encrypted',
      file('docx', Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.from('EncryptedPackage', 'utf16le')])),
    ],
    ['unreadable', file('pdf', pdf.subarray(0, 60))],
    ['unreadable', file('docx', broken.subarray(0, broken.length / 2))],
    ['unreadable', file('docx', docxOf('<w:document'))],
    ['not_allowed', file('docx', docxOf(wordXml([{ text: '&e;' }], entity)))],
    ['no_text', file('pdf', pdfOf([[]]))],
    ['empty', file('txt', '')],
    ['empty', file('txt', ' \n\t \ufeff'.trimEnd())],
    ['empty', file('html', '<p> </p><script>x</script>')],
    ['empty', file('docx', docxOf(wordXml([])))],
    ['empty', written('txt', '')],
    ['too_long', file('txt', 'word '.repeat(1_100_000))],
  ] as const)
    t.equal(await reasonOf(source), reason, `${source.type} is ${reason}`)
})

test('an archive is inflated no further than a bound, whatever it says of itself', async (t) => {
  const bomb = docxOf(wordXml([{ text: 'x' }]), { 'word/document.xml': Buffer.alloc(200_000_000, 0x20) })
  t.ok(bomb.length < 1_000_000)
  t.equal(await reasonOf(file('docx', bomb)), 'too_complex')
  // Two parts that are each below the bound.
  const half = Buffer.alloc(40_000_000, 0x20)
  const both = openZip(zipOf({ one: half, other: half }), 64_000_000)
  t.equal(both.read('one').length, half.length)
  t.throws(() => both.read('other'), /too_complex/)
})

test('documents are read in a thread, which is ended when it takes too long, and there again for the next', async (t) => {
  const clock = createHandClock()
  const reader = createReader({ clock, within: 1_500 })
  t.teardown(() => reader.close())
  const nested = `<w:p>`.repeat(3_000_000)
  const late = t.rejects(reader.read(file('docx', docxOf(`<w:document>${nested}`)), 'Deep', true), /too_complex/)
  clock.advance(2_000)
  await late
  t.equal(await reader.read(file('txt', 'Hello there.'), 'Greeting', true), 'Hello there.')
  const { passages, vectors } = await reader.next()
  t.same(passages, [{ heading: '', text: 'Hello there.' }])
  t.equal(vectors?.length, 1)
  t.same((await reader.next()).passages, [])
  await t.rejects(reader.read(file('pdf', 'no pdf'), 'No', true), /wrong_type/)
})

test('a document is read by another thread than the one that sends sound', async (t) => {
  const reader = createReader({ clock: systemClock })
  t.teardown(() => reader.close())
  const lines = Array.from({ length: 40 }, (_, at) => ({ text: `Line ${at} of a page that takes a while to read.` }))
  const pdf = file('pdf', pdfOf(Array.from({ length: 200 }, () => lines)))
  const [own, all] = [process.threadCpuUsage(), process.cpuUsage()]
  await reader.read(pdf, 'Long', true)
  while ((await reader.next()).passages.length > 0);
  const [{ user: here }, { user: everywhere }] = [process.threadCpuUsage(own), process.cpuUsage(all)]
  t.ok(here < everywhere / 4, `${here} of ${everywhere} µs were spent here`)
})
