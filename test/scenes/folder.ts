/** Owns folders of tests: made fresh, removed with the test. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'

export async function createFolder(t: { teardown(close: () => Promise<void>): unknown }): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-test-'))
  t.teardown(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}
