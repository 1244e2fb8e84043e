/** `npm run admin -- backup` and `restore`: what comes back, and what is said and left behind when they fail. */
import { execFile } from 'node:child_process'
import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import process from 'node:process'
import { test, type Test } from 'tap'
import { makeBackup } from '../../store/backup/make-backup.ts'
import { contentsOf, filesIn, homeOf, openHome, schemaOf } from '../scenes/backup.ts'
import { createFolder } from '../scenes/folder.ts'
import { openWholeApi } from '../scenes/whole-api.ts'

const program = path.join(import.meta.dirname, '../../tools/admin/admin.ts')

type Ended = { readonly code: number | string | null; readonly out: string; readonly err: string }

/** As an operator runs it, outside of the repository, so that nobody's `.env` is read. */
function admin(cwd: string, env: Record<string, string>, args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { cwd, env: { PATH: process.env['PATH'], ...env } }
    execFile(process.execPath, [program, ...args], options, (error, out, err) =>
      resolve({ code: error ? (error.code ?? null) : 0, out: out.trimEnd(), err: err.trimEnd() }),
    )
  })
}

/** A home with one of everything in two accounts, and its backup. */
async function openBackedUp(t: Test) {
  const { sql, database } = await openWholeApi(t)
  const folder = await createFolder(t)
  const home = homeOf(database.dataDir, database.server)
  const file = path.join(folder, 'backup.tar.zst')
  return { sql, home, folder, file, make: () => makeBackup(home, file, Date.now(), () => undefined) }
}

test('a backup restores in an empty place: rows, computed columns, sequences, key and recordings', async (t) => {
  const { sql, home, folder, file, make } = await openBackedUp(t)
  await make()
  t.equal((await stat(file)).mode & 0o777, 0o600)
  const target = path.join(folder, 'target')
  const { code, out, err } = await admin(folder, { DATA_DIR: target }, ['restore', file])
  t.same({ code, err }, { code: 0, err: '' }, err)
  t.match(out, new RegExp(`^Restored: .*${(await sql`select from calls`).length} calls, `))
  const restored = await openHome(t, target)
  const { audit_entries: _, ...before } = await contentsOf(sql)
  const { audit_entries: __, ...after } = await contentsOf(restored.sql)
  t.same(after, before)
  t.same(await schemaOf(restored.sql), await schemaOf(sql))
  const recordings = await filesIn(home.recordingsDir)
  t.ok(Object.keys(recordings).length >= 4)
  t.same(await filesIn(path.join(target, 'recordings')), recordings)
  t.equal(
    await readFile(path.join(target, 'app.key'), 'utf8'),
    await readFile(path.join(home.dataDir, 'app.key'), 'utf8'),
  )
  t.equal((await stat(path.join(target, 'app.key'))).mode & 0o777, 0o600)
})
