/**
 * Owns which tests are fast: those that need no database, no browser, no other program and no speech in real time. A file's own imports and those
 * of the tests' parts behind it tell, so that nobody has to keep a list.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '..')

/** What a test that is not fast stands on: folders end with a slash. The fake of OpenAI Realtime hears and speaks in real time. */
const slowParts = [
  'store/embedded-postgres.ts',
  'store/open-database.ts',
  'test/fake/openai-realtime-session.ts',
  'test/flows/',
  'test/peers/',
  'test/scenes/database.ts',
  'test/tools/',
  'voice/engines/embedded/engine.ts',
  'voice/engines/embedded/flite.ts',
  'voice/engines/embedded/recognition.ts',
  'voice/engines/embedded/synthesiser.ts',
]

const imports = /(?:^|\n)\s*(?:import|export)\b[^'"]*?['"](\.[^'"]+)['"]|\bimport\(\s*['"](\.[^'"]+)['"]/g

const importsOf = (file: string): string[] =>
  [...readFileSync(path.join(root, file), 'utf8').matchAll(imports)].map(([, from, dynamic]) =>
    path.posix.join(path.posix.dirname(file), from ?? dynamic ?? ''),
  )

/** Parts of the product are looked at and not into: a test that imports the wiring need not run all of it. */
function isFast(file: string, seen: Set<string> = new Set()): boolean {
  if (slowParts.some((part) => (part.endsWith('/') ? file.startsWith(part) : file === part))) return false
  if (seen.has(file) || !file.startsWith('test/') || !existsSync(path.join(root, file))) return true
  seen.add(file)
  if (readFileSync(path.join(root, file), 'utf8').includes("from 'node:child_process'")) return false
  return importsOf(file).every((imported) => isFast(imported, seen))
}

export const allTests = (): string[] => globSync('test/**/*.test.ts', { cwd: root }).toSorted()

export const fastTests = (): string[] => allTests().filter((file) => isFast(file))
