/** Owns how a folder is made with those above it. Node's own way (24.21) never returns where the file system says of every part that it is not there, as /proc does. */
import { mkdir, stat } from 'node:fs/promises'
import path from 'node:path'

/** For this user only, as far as it was not there. Rejects with the system's error. */
export async function makeFolder(folder: string): Promise<void> {
  try {
    await makeOne(folder)
  } catch (error) {
    const parent = path.dirname(folder)
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || parent === folder) throw error
    await makeFolder(parent)
    await makeOne(folder)
  }
}

async function makeOne(folder: string): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 })
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST' && (await stat(folder)).isDirectory()
    if (!isThere) throw error
  }
}
