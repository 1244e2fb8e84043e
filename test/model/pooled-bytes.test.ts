/** Memory that is shared in pieces: each part is its owner's alone. */
import { test } from 'tap'
import { pooledBytes, pooledCopyFrom, pooledCopyOf } from '../../model/pooled-bytes.ts'

test('parts are zero, aligned and of nobody else, also over the end of a piece and beyond the longest', (t) => {
  const lengths = [0, 1, 7, 8, 9, 172, 1_932, 2_048, 2_049, 70_000]
  const parts = Array.from({ length: 200 }, (_, at) => pooledBytes(lengths[at % lengths.length]!))
  t.ok(parts.every((part, at) => part.length === lengths[at % lengths.length]))
  t.ok(parts.every((part) => part.every((byte) => byte === 0)))
  t.ok(parts.every(({ byteOffset }) => byteOffset % 8 === 0))
  for (const [at, part] of parts.entries()) part.fill((at % 250) + 1)
  t.ok(parts.every((part, at) => part.every((byte) => byte === (at % 250) + 1)))
  const pieces = new Set(parts.map(({ buffer }) => buffer))
  t.ok(pieces.size < parts.length / 2, 'most share theirs')
  t.ok([...pieces].every(({ byteLength }) => byteLength <= 70_000))
  t.end()
})

test('a copy stays as it is when what it was made of changes', (t) => {
  const bytes = Buffer.from('sound of a caller').subarray(3)
  const copy = pooledCopyOf(bytes)
  bytes.fill(0)
  t.equal(Buffer.from(copy).toString(), 'nd of a caller')
  t.end()
})

test('a copy of words of other memory is as long as it was asked for, and those behind it are untouched', (t) => {
  const source = Int32Array.from({ length: 16 }, (_, at) => at * 0x01010101)
  const bytes = new Uint8Array(source.buffer)
  for (let length = 0; length <= 40; length++) {
    const copy = pooledCopyFrom(source, 3, length)
    const next = pooledBytes(8)
    t.same(copy, bytes.subarray(12, 12 + length))
    t.ok(next.every((byte) => byte === 0))
  }
  t.end()
})
