/** Owns how tests treat programs of the machine: elsewhere a missing one skips the test with the reason, in CI it fails it. */
import { existsSync } from 'node:fs'
import type { Test } from 'tap'

/** The first of `candidates` that exists; null after the test was skipped or failed. */
export function needsTool(t: Test, name: string, candidates: readonly string[]): string | null {
  const found = candidates.find((candidate) => existsSync(candidate))
  if (found) return found
  const reason = `${name} is not here (looked at ${candidates.join(', ')})`
  if (process.env['CI'] === 'true') t.fail(`${reason}; CI must provide it`)
  else t.pass(name, { skip: reason })
  return null
}
