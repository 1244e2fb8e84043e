/**
 * Owns the repair of old WebAssembly binaries: float-to-integer conversions that trap outside the integer's range become the saturating
 * ones, and the limit of the imported memory can be raised. Only the opcodes of the first WebAssembly release are known; anything newer throws.
 */

const importSection = 2
const codeSection = 10
const headerBytes = 8

export type Rewritten = { readonly binary: Uint8Array<ArrayBuffer>; readonly sites: number }

type Reader = {
  readonly bytes: Uint8Array
  at: number
}

type Sections = readonly { readonly id: number; readonly body: Uint8Array }[]

/** `maxMemoryPages` (of 64 KiB) replaces the upper limit of every memory import. Throws for what is no WebAssembly of version 1. */
export function rewriteTruncations(binary: Uint8Array, maxMemoryPages?: number): Rewritten {
  let sites = 0
  const parts: Uint8Array[] = [binary.subarray(0, headerBytes)]
  for (const section of sectionsOf(binary)) {
    if (section.id === codeSection) {
      const code = rewriteCode(section.body)
      sites += code.sites
      parts.push(frameOf(section.id, code.body))
      continue
    }
    const raise = section.id === importSection && maxMemoryPages !== undefined
    parts.push(frameOf(section.id, raise ? raiseMemoryLimit(section.body, maxMemoryPages) : section.body))
  }
  return { binary: concat(parts), sites }
}

function sectionsOf(binary: Uint8Array): Sections {
  const version = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00]
  if (!version.every((byte, index) => binary[index] === byte)) throw new Error('not a WebAssembly binary of version 1')
  const reader: Reader = { bytes: binary, at: headerBytes }
  const sections: { id: number; body: Uint8Array }[] = []
  while (reader.at < binary.length) {
    const id = byteOf(reader)
    sections.push({ id, body: take(reader, readUnsigned(reader)) })
  }
  return sections
}

function rewriteCode(section: Uint8Array): { body: Uint8Array; sites: number } {
  const reader: Reader = { bytes: section, at: 0 }
  const count = readUnsigned(reader)
  const parts: Uint8Array[] = [unsigned(count)]
  let sites = 0
  for (let index = 0; index < count; index++) {
    const body = take(reader, readUnsigned(reader))
    const found = truncationsOf(body)
    sites += found.length
    const rewritten = saturated(body, found)
    parts.push(unsigned(rewritten.length), rewritten)
  }
  return { body: concat(parts), sites }
}

/** The places of trapping conversions in one function body (locals first, then instructions). */
function truncationsOf(body: Uint8Array): number[] {
  const reader: Reader = { bytes: body, at: 0 }
  for (let groups = readUnsigned(reader); groups > 0; groups--) {
    skipLeb(reader)
    reader.at++
  }
  const found: number[] = []
  while (reader.at < body.length) {
    const at = reader.at
    const opcode = byteOf(reader)
    if (isTruncation(opcode)) found.push(at)
    skipImmediates(reader, opcode)
  }
  return found
}

/** i32.trunc_f32_s … i32.trunc_f64_u and i64.trunc_f32_s … i64.trunc_f64_u. */
const isTruncation = (opcode: number): boolean =>
  (opcode >= 0xa8 && opcode <= 0xab) || (opcode >= 0xae && opcode <= 0xb1)

/** 0xA8–0xAB become 0xFC 0–3, 0xAE–0xB1 become 0xFC 4–7: one byte longer each. */
function saturated(body: Uint8Array, places: readonly number[]): Uint8Array {
  if (places.length === 0) return body
  const parts: Uint8Array[] = []
  let from = 0
  for (const place of places) {
    const opcode = body[place] ?? 0
    parts.push(body.subarray(from, place), Uint8Array.of(0xfc, opcode < 0xac ? opcode - 0xa8 : opcode - 0xaa))
    from = place + 1
  }
  parts.push(body.subarray(from))
  return concat(parts)
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

/** How many LEB128 numbers follow an opcode. Block types and the reserved byte of memory.size are one-byte numbers too. */
function lebsAfter(opcode: number): number {
  if (opcode >= 0x28 && opcode <= 0x3e) return 2
  if (opcode >= 0x45 && opcode <= 0xbf) return 0
  if (opcode >= 0x20 && opcode <= 0x24) return 1
  switch (opcode) {
    case 0x00: // unreachable, nop, else, end, return, drop, select
    case 0x01:
    case 0x05:
    case 0x0b:
    case 0x0f:
    case 0x1a:
    case 0x1b:
      return 0
    case 0x02: // block, loop, if, br, br_if, call, memory.size, memory.grow, i32.const, i64.const
    case 0x03:
    case 0x04:
    case 0x0c:
    case 0x0d:
    case 0x10:
    case 0x3f:
    case 0x40:
    case 0x41:
    case 0x42:
      return 1
    case 0x11: // call_indirect
      return 2
    default:
      throw new Error(`unknown WebAssembly opcode 0x${opcode.toString(16)}`)
  }
}

function raiseMemoryLimit(section: Uint8Array, pages: number): Uint8Array {
  const reader: Reader = { bytes: section, at: 0 }
  const count = readUnsigned(reader)
  const parts: Uint8Array[] = [unsigned(count)]
  for (let index = 0; index < count; index++) {
    const from = reader.at
    take(reader, readUnsigned(reader))
    take(reader, readUnsigned(reader))
    const kind = byteOf(reader)
    if (kind !== 2) {
      skipImport(reader, kind)
      parts.push(section.subarray(from, reader.at))
      continue
    }
    const limitsAt = reader.at
    const minimum = readLimits(reader)
    parts.push(section.subarray(from, limitsAt), Uint8Array.of(1), unsigned(minimum), unsigned(pages))
  }
  return concat(parts)
}

/** Function: type index. Table: element type and limits. Global: value type and mutability. */
function skipImport(reader: Reader, kind: number): void {
  if (kind === 0) skipLeb(reader)
  else if (kind === 1) {
    reader.at++
    readLimits(reader)
  } else reader.at += 2
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

function take(reader: Reader, length: number): Uint8Array {
  const from = reader.at
  reader.at += length
  if (reader.at > reader.bytes.length) throw new Error('the WebAssembly binary is cut off')
  return reader.bytes.subarray(from, reader.at)
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

function unsigned(value: number): Uint8Array {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Uint8Array.from([...bytes, rest])
    bytes.push((rest % 128) | 0x80)
  }
}

const frameOf = (id: number, body: Uint8Array): Uint8Array => concat([Uint8Array.of(id), unsigned(body.length), body])

function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
