/** Owns disks of tests that are soon full: in memory, mounted where this user may do that. */
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Teardown } from './database.ts'

const run = promisify(execFile)

/** At `folder`, which is made, with `size` as mount takes it. False: none can be made here. */
export async function mountSmallDisk(t: Teardown, folder: string, size: string): Promise<boolean> {
  await mkdir(folder, { recursive: true })
  const isMounted = await run('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder]).then(
    () => true,
    () => false,
  )
  if (isMounted) t.teardown(async () => void (await run('umount', ['-l', folder])))
  return isMounted
}
