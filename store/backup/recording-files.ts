/**
 * Owns the files of the folder of recordings in a backup: which they are, and how they come back. Those that are written at this moment are taken as far as
 * they have come, as a process that is killed leaves them.
 */
import { open, opendir, readdir, rename, rm, utimes, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { recordingOfKey } from '../../model/recording-store.ts'
import { makeFolder } from '../make-folder.ts'
import { folderIdFile } from '../recording-places.ts'
import { ArchiveFlaw } from './archive-flaw.ts'
import type { Part } from './archive.ts'

export const recordingsPrefix = 'recordings/'
/** The names of folders in which the service looks for no recordings begin with a dot. */
const draftFolder = '.restoring'
const chunkBytes = 256 << 10

/** The id of the folder, then every recording in every form. What goes away meanwhile is left out. */
export async function* recordingParts(folder: string): AsyncGenerator<Part> {
  for await (const name of namesIn(folder)) {
    const handle = await open(path.join(folder, name), 'r').catch(absent)
    if (handle === null) continue
    try {
      const { size, mtimeMs } = await handle.stat()
      yield { name: `${recordingsPrefix}${name}`, size, mtime: mtimeMs, body: bytesOf(handle, size) }
    } finally {
      await handle.close()
    }
  }
}

export const hasRecordings = async (folder: string): Promise<boolean> => {
  for await (const name of namesIn(folder)) if (name !== folderIdFile) return true
  return false
}

async function* namesIn(folder: string): AsyncGenerator<string> {
  const accounts = await readdir(folder, { withFileTypes: true }).catch(absent)
  for (const account of accounts ?? []) {
    if (account.name === folderIdFile) yield folderIdFile
    if (!account.isDirectory() || account.name.startsWith('.')) continue
    for await (const { name } of await opendir(path.join(folder, account.name)))
      if (isRecording(`${account.name}/${name}`)) yield `${account.name}/${name}`
  }
}

async function* bytesOf(handle: FileHandle, size: number): AsyncGenerator<Uint8Array> {
  for (let position = 0; position < size;) {
    const chunk = Buffer.allocUnsafe(Math.min(chunkBytes, size - position))
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, position)
    if (bytesRead === 0) throw new Error('a recording became shorter while it was read')
    position += bytesRead
    yield chunk.subarray(0, bytesRead)
  }
}

/** Recordings on their way from an archive. */
export type RecordingDraft = {
  write(part: Part): Promise<void>
  /** To where the service looks for them. All that stood there is kept in the folder `aside` of theirs. */
  place(aside: string): Promise<void>
  /** As it was before `place`. Idempotent. */
  undo(): Promise<void>
}

/** On the file system of the folder itself, so that they are moved and not copied. What a killed process left of its own is removed. */
export async function openRecordingDraft(folder: string): Promise<RecordingDraft> {
  const draft = path.join(folder, draftFolder)
  await makeFolder(folder)
  await rm(draft, { recursive: true, force: true })
  await makeFolder(draft)
  const moved: { readonly from: string; readonly to: string }[] = []
  const move = async (name: string, from: string, to: string): Promise<void> => {
    await makeFolder(to)
    await rename(path.join(from, name), path.join(to, name))
    moved.push({ from: path.join(from, name), to: path.join(to, name) })
  }
  return {
    async write({ name, mtime, body }) {
      const key = name.slice(recordingsPrefix.length)
      if (key !== folderIdFile && !isRecording(key))
        throw new ArchiveFlaw('a file in it has a name that no recording has')
      const file = path.join(draft, key)
      await makeFolder(path.dirname(file))
      const handle = await open(file, 'wx', 0o600)
      try {
        await handle.writeFile(body)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await utimes(file, mtime / 1000, mtime / 1000)
    },
    async place(aside) {
      const former = (await readdir(folder)).filter((name) => name === folderIdFile || !name.startsWith('.'))
      for (const name of former) await move(name, folder, path.join(folder, aside))
      for (const name of await readdir(draft)) await move(name, draft, folder)
      await rm(draft, { recursive: true, force: true })
    },
    async undo() {
      for (const { from, to } of moved.splice(0).toReversed()) {
        await makeFolder(path.dirname(from))
        await rename(to, from)
      }
      await rm(draft, { recursive: true, force: true })
    },
  }
}

function isRecording(key: string): boolean {
  try {
    recordingOfKey(key)
    return true
  } catch {
    // Whatever an operator has put there, or the draft of a copy.
    return false
  }
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null
  throw error
}
