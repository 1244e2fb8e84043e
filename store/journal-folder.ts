/**
 * Owns the folder of journals, `<dataDir>/steps`: a file for each process that could not reach the database, and what nobody could use any more. Several
 * processes may share it. Whoever has a journal listens on a socket beside it as long as it lives, which the system itself ends; a journal whose
 * process listens no more is taken by the first that finds it. The folder is of one machine: sockets reach no further.
 */
import { once } from 'node:events'
import { appendFile, open, readdir, rename, rm, statfs, type FileHandle } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import type { NodeId } from '../model/ids.ts'
import type { Log } from '../model/log.ts'
import { createJournalFile, openFormerJournal, type FormerJournal, type JournalFile } from './journal-file.ts'
import { makeFolder } from './make-folder.ts'

export type AdoptedJournal = FormerJournal & {
  /** Nothing of it is needed any more. */
  remove(): Promise<void>
}

export type JournalFolder = {
  /** Of this process. */
  readonly own: JournalFile
  /** What processes that are no more have left behind: this process's from now on. */
  adopt(): Promise<AdoptedJournal[]>
  /** For people: lines that cannot be written any more. Gives the file. */
  setAside(lines: readonly string[]): Promise<string>
  /** Idempotent. */
  close(): Promise<void>
}

export type JournalFolderOptions = {
  readonly folder: string
  readonly nodeId: NodeId
  /** Bytes of a journal at most. */
  readonly limit: number
  /** Bytes of the disk that are left free, for the database that is to come back on it. */
  readonly reserve: number
  readonly log: Log
}

const ending = '.journal'
const aside = 'unwritten.jsonl'

/** Makes nothing until a line comes. */
export function createJournalFolder({ folder, nodeId, limit, reserve, log }: JournalFolderOptions): JournalFolder {
  let listening: Promise<() => Promise<void>> | null = null
  let adopted = 0
  const listen = (): Promise<() => Promise<void>> => (listening ??= listenIn(folder, nodeId))
  const prepare = async (): Promise<void> => {
    await makeFolder(folder)
    // Alone on its folder, as nearly every process is, it needs nobody to know that it lives.
    await listen().catch((error: unknown) => log.error('other processes cannot see that this one lives', { error }))
  }
  const hasRoom = async (): Promise<boolean> => {
    const { bavail, bsize } = await statfs(path.dirname(folder))
    return bavail * bsize > reserve
  }
  const ownFile = path.join(folder, `${nodeId}${ending}`)
  const own = createJournalFile({ file: ownFile, limit, hasRoom, prepare })

  /** Null: its process lives, or somebody else was faster. */
  const take = async (name: string): Promise<AdoptedJournal | null> => {
    const [owner = ''] = name.split('.')
    if (owner === nodeId || (await isListened(folder, owner))) return null
    await prepare()
    const file = path.join(folder, `${nodeId}.${++adopted}${ending}`)
    try {
      await rename(path.join(folder, name), file)
    } catch (error) {
      return absent(error as NodeJS.ErrnoException)
    }
    await rm(path.join(folder, socketName(owner)), { force: true })
    const journal = await openFormerJournal(file)
    const remove = async (): Promise<void> => {
      await journal.close()
      await rm(file, { force: true })
    }
    return { ...journal, remove }
  }
  const leave = async (): Promise<void> => {
    await own.close()
    if (own.size() === 0) await rm(ownFile, { force: true })
    const stop = await listening?.catch(() => null)
    await stop?.()
  }
  let closed: Promise<void> | null = null
  return {
    own,
    async adopt() {
      const names = (await readdir(folder).catch(absent)) ?? []
      const found: AdoptedJournal[] = []
      for (const name of names.filter((one) => one.endsWith(ending))) {
        // One that cannot be read hides no other. Taken already, it is tried again by the process that finds it when this one has ended.
        const journal = await take(name).catch((error: unknown) => {
          log.error('a journal cannot be read, and stays in its folder', { folder, journal: name, error })
          return null
        })
        if (journal) found.push(journal)
      }
      return found
    },
    async setAside(lines) {
      await makeFolder(folder)
      const file = path.join(folder, aside)
      await appendFile(file, lines.map((line) => `${line}\n`).join(''), { mode: 0o600, flush: true })
      return file
    },
    close: () => (closed ??= leave()),
  }
}

/** Tells each line that was put aside; none where nothing was. */
export async function listAside(folder: string, found: (line: string) => void): Promise<void> {
  const handle = await open(path.join(folder, aside), 'r').catch(absent)
  if (handle === null) return
  for await (const line of handle.readLines()) found(line)
}

/** False: there is nothing. */
export const forgetAside = (folder: string): Promise<boolean> =>
  rm(path.join(folder, aside)).then(
    () => true,
    (error: NodeJS.ErrnoException) => absent(error) !== null,
  )

export const journalFolderOf = (dataDir: string): string => path.join(dataDir, 'steps')

const socketName = (owner: string): string => `${owner}.sock`

/**
 * A socket's path holds a hundred bytes, and folders may be longer: where the system has a name for an open folder, it goes by that.
 */
async function withSocketPath<Value>(
  folder: string,
  owner: string,
  use: (path: string) => Promise<Value>,
): Promise<Value> {
  if (process.platform !== 'linux') return use(path.join(folder, socketName(owner)))
  const handle: FileHandle = await open(folder, 'r')
  try {
    return await use(`/proc/self/fd/${handle.fd}/${socketName(owner)}`)
  } finally {
    await handle.close()
  }
}

async function listenIn(folder: string, owner: NodeId): Promise<() => Promise<void>> {
  const server = net.createServer((socket) => socket.destroy())
  server.unref()
  await withSocketPath(folder, owner, async (place) => {
    server.listen({ path: place })
    await once(server, 'listening')
  })
  return async () => {
    server.close()
    await once(server, 'close')
    // The name by which the server knows it is gone with the open folder.
    await rm(path.join(folder, socketName(owner)), { force: true })
  }
}

/** One that stands still counts: the system takes the connection for it. */
function isListened(folder: string, owner: string): Promise<boolean> {
  return withSocketPath(folder, owner, async (place) => {
    const socket = net.connect({ path: place })
    try {
      await once(socket, 'connect')
      return true
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ENOTSOCK') return false
      // Its queue is full, or the system refuses to say: nobody takes what may be somebody's.
      return true
    } finally {
      socket.destroy()
    }
  })
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}
