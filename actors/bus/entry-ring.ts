/**
 * Owns the ring of fixed slots in shared memory by which one thread hands small bus messages to another: one writer, one reader, no lock. A
 * message costs its writer a copy into the slot, and its reader a look at two numbers.
 *
 * Memory: `controls` numbers, then the slots. A slot: seq, kind, id, length of the text, length of the payload (32 bit each), text (UTF-8), payload.
 */

import { pooledCopyFrom, pooledCopyOf } from '../../model/pooled-bytes.ts'

export type Entry = {
  /** What is to be done with it; the ends agree on the numbers. */
  readonly kind: number
  /** Of a subscription, or of a request. */
  readonly id: number
  readonly number: number
  readonly text: string
  readonly payload: Uint8Array
}

/** A frame of 20 ms at 48 kHz with its header, and the subject of a call. */
const slotBytes = 2048
const slots = 1024
const headBytes = 24
/** Counters of 32 bit, which only grow and wrap; each has one writer. */
const controls = { written: 0, read: 1, resting: 2, tookMessages: 3, tookBytes: 4 } as const
const controlBytes = 64

export const createRingMemory = (): SharedArrayBuffer => new SharedArrayBuffer(controlBytes + slots * slotBytes)

function viewsOf(memory: SharedArrayBuffer) {
  return {
    control: new Int32Array(memory, 0, controlBytes / 4),
    heads: new Uint32Array(memory, controlBytes),
    words: new Int32Array(memory, controlBytes),
    bytes: Buffer.from(memory, controlBytes),
  }
}

export type RingWriter = {
  /** False: it is too large for a slot, or all slots are full. */
  write(entry: Entry, seq: number): boolean
  /** True once after the reader went to rest: it has to be woken. */
  wakes(): boolean
  /** What the reader has taken of that which came by message. */
  taken(): { readonly messages: number; readonly bytes: number }
}

export function createRingWriter(memory: SharedArrayBuffer): RingWriter {
  const { control, heads, bytes } = viewsOf(memory)
  let written = Atomics.load(control, controls.written)
  return {
    write({ kind, id, number, text, payload }, seq) {
      // No character of a subject takes more than three bytes.
      if (headBytes + 3 * text.length + payload.length > slotBytes) return false
      if (((written - Atomics.load(control, controls.read)) | 0) >= slots) return false
      const slot = (written & (slots - 1)) * slotBytes
      const textLength = text === '' ? 0 : bytes.write(text, slot + headBytes)
      bytes.set(payload, slot + headBytes + textLength)
      const head = slot / 4
      heads[head] = seq
      heads[head + 1] = kind
      heads[head + 2] = id
      heads[head + 3] = number
      heads[head + 4] = textLength
      heads[head + 5] = payload.length
      written = (written + 1) | 0
      Atomics.store(control, controls.written, written)
      return true
    },
    wakes: () => Atomics.load(control, controls.resting) === 1 && Atomics.exchange(control, controls.resting, 0) === 1,
    taken: () => ({
      messages: Atomics.load(control, controls.tookMessages) >>> 0,
      bytes: Atomics.load(control, controls.tookBytes) >>> 0,
    }),
  }
}

export type RingReader = {
  /** The next entry if it is this one. Its payload is the receiver's own. */
  peek(seq: number): Entry | null
  pass(): void
  /** An entry of this size came by message. */
  took(bytes: number): void
  /** The reader will not look before it is woken. False: something has been written meanwhile. */
  rests(): boolean
}

export function createRingReader(memory: SharedArrayBuffer): RingReader {
  const { control, heads, words, bytes } = viewsOf(memory)
  let read = Atomics.load(control, controls.read)
  const isEmpty = (): boolean => Atomics.load(control, controls.written) === read
  return {
    peek(seq) {
      if (isEmpty()) return null
      const slot = (read & (slots - 1)) * slotBytes
      const head = slot / 4
      if (heads[head] !== seq) return null
      const textLength = heads[head + 4]!
      const textEnd = slot + headBytes + textLength
      return {
        kind: heads[head + 1]!,
        id: heads[head + 2]!,
        number: heads[head + 3]!,
        text: textLength === 0 ? '' : bytes.toString('utf8', slot + headBytes, textEnd),
        payload:
          textLength === 0
            ? pooledCopyFrom(words, textEnd / 4, heads[head + 5]!)
            : pooledCopyOf(bytes.subarray(textEnd, textEnd + heads[head + 5]!)),
      }
    },
    pass() {
      read = (read + 1) | 0
      Atomics.store(control, controls.read, read)
    },
    took(size) {
      Atomics.add(control, controls.tookMessages, 1)
      Atomics.add(control, controls.tookBytes, size)
    },
    rests() {
      Atomics.store(control, controls.resting, 1)
      if (isEmpty()) return true
      Atomics.store(control, controls.resting, 0)
      return false
    },
  }
}
