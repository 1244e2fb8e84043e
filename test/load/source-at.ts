/**
 * Owns another state of this project beside this one, for as long as a comparison takes: the files of a commit in a folder of their own, with the
 * modules of this one. Nothing is written into the repository, and nothing is fetched.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import process from 'node:process'

const prefix = 'parley-pair-'
const benches = 'test/load'
/** What benches stand on; of an older state that lacks one of these files it is added, and none is replaced. */
const supports = ['test/fake', 'test/peers', 'test/scenes', 'tools/callers']
export const root = path.resolve(import.meta.dirname, '../..')

export type SourceAt = {
  /** Of its files. */
  readonly folder: string
  /** For what its processes leave behind; it goes with the rest. */
  readonly temporary: string
}

/** `withTheseBenches`: it is measured by the benches of this state, not by its own. The caller removes it. */
export async function checkOut(folder: string, ref: string, withTheseBenches: boolean): Promise<SourceAt> {
  const source = { folder: path.join(folder, 'source'), temporary: path.join(folder, 'tmp') }
  await mkdir(source.folder)
  await mkdir(source.temporary)
  await extract(ref, source.folder)
  await symlink(path.join(root, 'node_modules'), path.join(source.folder, 'node_modules'))
  if (!withTheseBenches) return source
  await rm(path.join(source.folder, benches), { recursive: true, force: true })
  await cp(path.join(root, benches), path.join(source.folder, benches), { recursive: true })
  for (const support of supports)
    await cp(path.join(root, support), path.join(source.folder, support), { recursive: true, force: false })
  return source
}

/** Its name tells whose it is: what processes left behind that were killed is removed by the next. */
export async function makePairFolder(): Promise<string> {
  for (const name of await readdir(tmpdir())) {
    const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid)))
      await rm(path.join(tmpdir(), name), { recursive: true, force: true })
  }
  return mkdtemp(path.join(tmpdir(), `${prefix}${process.pid}-`))
}

/** Signal 0 asks only. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

async function extract(ref: string, folder: string): Promise<void> {
  const archive = spawn('git', ['archive', '--format=tar', ref], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  const tar = spawn('tar', ['-xf', '-', '-C', folder], { stdio: [archive.stdout, 'inherit', 'inherit'] })
  const [[archived], [extracted]] = await Promise.all([once(archive, 'exit'), once(tar, 'exit')])
  if (archived !== 0 || extracted !== 0) throw new Error(`git archive gave no files of ${ref}`)
}
