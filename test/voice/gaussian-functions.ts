/** Owns how gaussians.wat is assembled: for the recogniser's binary, whose functions it calls by their numbers there, and to be run alone. */
import { readFile } from 'node:fs/promises'
import wabt from 'wabt'
import { bodiesOf, type Bodies } from './wasm-edits.ts'

const source = new URL('../../voice/engines/embedded/gaussians.wat', import.meta.url)

/** Places of functions in the binary, imported ones included, and of the global that points at its stack. */
const imported = 64
const settle = 1079
const [codebook, best] = [settle + 2, settle + 3]
const stack = 6

const times = (count: number, text: string): string => Array.from({ length: count }, () => text).join('\n')
const memory = '(import "env" "memory" (memory 1))'
/** One stands behind the other. */
const called = [
  '(import "env" "settle" (func $settle (param i32 i32 i32)))',
  '(import "env" "insert" (func $insert (param i32 i32 i32 i32 i32)))',
]

async function assembled(...before: readonly string[]): Promise<Uint8Array<ArrayBuffer>> {
  const text = `(module ${before.join('\n')}\n${await readFile(source, 'utf8')})`
  const { parseWat } = await wabt()
  const module = parseWat('gaussians.wat', text, { simd: true, sat_float_to_int: true, mutable_globals: true })
  try {
    return Uint8Array.from(module.toBinary({}).buffer)
  } finally {
    module.destroy()
  }
}

/** As they are to stand in the recogniser. */
export async function gaussianBodies(): Promise<Bodies> {
  const globals = times(stack, '(import "env" "global" (global (mut i32)))')
  const top = '(import "env" "global" (global $stack (mut i32)))'
  const functions = times(settle, '(import "env" "function" (func))')
  const [first, second] = bodiesOf(await assembled(memory, globals, top, functions, ...called))
  if (!first || !second) throw new Error('there are two functions')
  return new Map([
    [codebook - imported, first],
    [best - imported, second],
  ])
}

/** Takes `env.memory`, `env.settle` and `env.insert`; its stack begins at `stackAt`. */
export const loneGaussians = (stackAt: number): Promise<Uint8Array<ArrayBuffer>> =>
  assembled(
    memory,
    ...called,
    `(global $stack (mut i32) (i32.const ${stackAt}))`,
    '(export "codebook" (func 2)) (export "best" (func 3)) (export "stack" (global 0))',
  )
