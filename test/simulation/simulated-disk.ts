/** Owns the disk of one machine of a simulated world, as far as steps are kept there: what is written outlives the process, and the next one finds it. */
import type { AdoptedJournal, JournalFolder } from '../../store/journal-folder.ts'
import type { JournalFile } from '../../store/journal-file.ts'
import type { Loop, Process } from './loop.ts'

type File = { readonly lines: Map<number, string>; owner: Process; isLeft: boolean }

export type SimulatedDisk = {
  folderOf(process: Process): JournalFolder
  /** Lines for which nobody has found a use. */
  lines(): number
}

export function createSimulatedDisk(
  loop: Loop,
  name: string,
  weather: { delay(): number },
  /** What cannot be written any more. */
  putAside: (line: string) => void,
): SimulatedDisk {
  const files = new Set<File>()
  let written = 0

  /** Answers when the disk has done it. A process that dies meanwhile has asked all the same. */
  const done = <Value>(process: Process, label: string, act: () => Value): Promise<Value> => {
    const { promise, resolve } = Promise.withResolvers<Value>()
    loop.happen(null, `disk ${name}`, weather.delay(), `disk < ${process.name} ${label}`, () => {
      const value = act()
      loop.happen(process, `disk ${name} back`, 0, `disk > ${process.name} ${label}`, () => resolve(value))
    })
    return promise
  }
  const readFrom = (file: File) => (process: Process, at: number) =>
    done(process, 'reads', () => file.lines.get(at) ?? '')

  return {
    lines: () => [...files].reduce((count, { lines }) => count + lines.size, 0),
    folderOf(process) {
      const file: File = { lines: new Map(), owner: process, isLeft: false }
      files.add(file)
      const read = readFrom(file)
      const own: JournalFile = {
        append: (text) =>
          done(process, 'writes', () => {
            const at = ++written
            file.lines.set(at, text)
            return { at, length: text.length }
          }),
        read: ({ at }) => read(process, at),
        clear: () => file.lines.clear(),
        size: () => [...file.lines.values()].reduce((size, { length }) => size + length, 0),
        close: () => Promise.resolve(),
      }
      const take = (found: File): AdoptedJournal => {
        found.owner = process
        found.isLeft = false
        const readFound = readFrom(found)
        return {
          read: ({ at }) => readFound(process, at),
          scan: (tell) =>
            done(process, 'scans', () => {
              for (const [at, text] of found.lines) tell(text, { at, length: text.length })
              return 0
            }),
          close: () => Promise.resolve(),
          remove: () => done(process, 'removes', () => void files.delete(found)),
        }
      }
      return {
        own,
        adopt: () =>
          done(process, 'looks', () =>
            [...files].filter(({ owner, isLeft, lines }) => (owner.isDead || isLeft) && lines.size > 0).map(take),
          ),
        setAside: (lines) =>
          done(process, `puts ${lines.length} lines aside`, () => {
            lines.forEach(putAside)
            return 'unwritten.jsonl'
          }),
        close: () => {
          for (const one of files) if (one.owner === process) one.isLeft = true
          return Promise.resolve()
        },
      }
    },
  }
}
