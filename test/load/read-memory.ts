/** Owns where the memory of this process is, as Linux tells it: V8's, the C library's, files', and what is left. Zero where nobody tells. */
import { readdirSync, readFileSync } from 'node:fs'
import process from 'node:process'
import { getHeapStatistics } from 'node:v8'

export type Memory = {
  readonly heapUsed: number
  /** Pages that V8 has and that are in memory. */
  readonly heapHeld: number
  readonly arrayBuffers: number
  /** Of malloc: of the main thread, and of the arenas of all threads. */
  readonly mainHeap: number
  readonly arenas: number
  /** Programs, libraries, mapped files. */
  readonly files: number
  readonly other: number
}

type Mapping = { readonly name: string; readonly from: bigint; readonly size: number; readonly rss: number }

const kb = 1024
/** glibc begins an arena at a whole multiple of this. */
const arenaBytes = 64n * 1024n * 1024n

export function readMemory(): Memory {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  const mappings = readMappings()
  const sum = (fits: (mapping: Mapping) => boolean): number =>
    mappings.filter(fits).reduce((total, { rss }) => total + rss, 0)
  const mainHeap = sum(({ name }) => name === '[heap]')
  const arenas = sum(isArena)
  const files = sum(({ name }) => name.startsWith('/'))
  const heapHeld = getHeapStatistics().total_physical_size
  const all = sum(() => true)
  return {
    heapUsed,
    heapHeld,
    arrayBuffers,
    mainHeap,
    arenas,
    files,
    other: all - mainHeap - arenas - files - heapHeld,
  }
}

/** The part of an arena that is in use begins where the arena does; the rest of its 64 MiB is a mapping without rights behind it. */
const isArena = ({ name, from, size }: Mapping): boolean =>
  name === '' && from % arenaBytes === 0n && BigInt(size) <= arenaBytes

export function countThreads(): number {
  try {
    return readdirSync('/proc/self/task').length
  } catch {
    return 0 // No /proc here.
  }
}

function readMappings(): Mapping[] {
  const mappings: Mapping[] = []
  let current: Omit<Mapping, 'rss'> | null = null
  for (const line of readLines()) {
    const [, from, to, name = ''] = /^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \S+\s*(.*)$/.exec(line) ?? []
    if (from !== undefined && to !== undefined) {
      const [begins, ends] = [BigInt(`0x${from}`), BigInt(`0x${to}`)]
      current = { name, from: begins, size: Number(ends - begins) }
    }
    const rss = /^Rss:\s+(\d+) kB/.exec(line)?.[1]
    if (rss !== undefined && current) mappings.push({ ...current, rss: Number(rss) * kb })
  }
  return mappings
}

function readLines(): string[] {
  try {
    return readFileSync('/proc/self/smaps', 'latin1').split('\n')
  } catch {
    return []
  }
}
