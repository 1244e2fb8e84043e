/** RFC 7578: forms with files, as clients send them and as strangers do. */
import { test } from 'tap'
import { boundaryOf, readForm } from '../../net/http/multipart.ts'
import { formOf } from '../scenes/document-files.ts'

const bytes = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'))
const textOf = (part: { bytes: Uint8Array } | undefined) => Buffer.from(part?.bytes ?? []).toString('latin1')

test('the boundary of a form is read, quoted or plain, and nothing else is a form', (t) => {
  t.equal(boundaryOf('multipart/form-data; boundary=abc'), 'abc')
  t.equal(boundaryOf('Multipart/Form-Data; charset=utf-8; boundary="a b:c"'), 'a b:c')
  for (const type of [
    'multipart/form-data',
    'multipart/mixed; boundary=abc',
    'application/json',
    '',
    'multipart/form-data; boundary=',
  ])
    t.equal(boundaryOf(type), null)
  t.end()
})

test('what undici writes is read, fields and files with any name', async (t) => {
  const form = new FormData()
  form.append('title', 'Größe "groß"')
  form.append('tagKeys', 'a')
  form.append('tagKeys', 'b')
  form.append('file', new Blob([bytes('\r\n--x\r\n\0\xff')]), 'größe "1".txt')
  form.append('empty', new Blob([]), 'e.txt')
  const request = new Request('http://x/', { method: 'POST', body: form })
  const boundary = boundaryOf(request.headers.get('content-type') ?? '') ?? ''
  const parts = readForm(new Uint8Array(await request.arrayBuffer()), boundary)
  t.same(
    parts?.map(({ name, fileName }) => [name, fileName]),
    [
      ['title', null],
      ['tagKeys', null],
      ['tagKeys', null],
      ['file', 'größe "1".txt'],
      ['empty', 'e.txt'],
    ],
  )
  t.equal(Buffer.from(parts?.[0]?.bytes ?? []).toString(), 'Größe "groß"')
  t.equal(textOf(parts?.[3]), '\r\n--x\r\n\0\xff', 'a file holds any bytes')
  t.equal(parts?.[4]?.bytes.length, 0)
})

test('a preamble, padding and other headers are passed over', (t) => {
  const body =
    'nobody reads this\r\n--b  \r\nX-Other: 1\r\ncontent-disposition: form-data; name=file; filename="a.txt"\r\n\r\nhi\r\n--b--\r\nafter'
  const parts = readForm(bytes(body), 'b')
  t.match(parts, [{ name: 'file', fileName: 'a.txt' }])
  t.equal(textOf(parts?.[0]), 'hi')
  t.end()
})

test('what is no form, or not all of one, is none', (t) => {
  const { body } = formOf([['a', 'b']], { name: 'c.txt', bytes: bytes('d') }, 'b')
  for (let length = 0; length < body.length - 4; length += 1) t.equal(readForm(body.slice(0, length), 'b'), null)
  for (const text of [
    '--b',
    '--b\r\n\r\nno head\r\n--b--',
    '--b\r\nContent-Disposition: attachment; name="a"\r\n\r\nx\r\n--b--',
    '--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--',
    `--b\r\nX: ${'x'.repeat(10_000)}\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--b--`,
    'x--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n--b--',
  ])
    t.equal(readForm(bytes(text), 'b'), null, text.slice(0, 40))
  const many = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n'.repeat(5_000) + '--b--'
  t.equal(readForm(bytes(many), 'b'), null, 'more parts than any form has')
  t.end()
})
