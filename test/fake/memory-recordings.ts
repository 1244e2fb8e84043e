/** Owns a recording store in memory: what was written is there at every moment, and a test may look at it. */
import {
  isWritten,
  recordingForms,
  recordingKeyIn,
  recordingOfKey,
  type RecordingStore,
} from '../../model/recording-store.ts'

export function createMemoryRecordings(files = new Map<string, Buffer>()): RecordingStore {
  const checked = (key: string): string => recordingKeyIn(recordingOfKey(key).form, key)
  return {
    create(key) {
      if (!isWritten(recordingOfKey(key).form)) throw new Error('that form of a recording is made of another one')
      let isOpen = !files.has(key)
      if (isOpen) files.set(key, Buffer.alloc(0))
      const write = (next: (before: Buffer) => Buffer): void => {
        if (isOpen) files.set(key, next(files.get(key) ?? Buffer.alloc(0)))
      }
      return {
        append: (bytes) => write((before) => Buffer.concat([before, bytes])),
        overwriteStart: (bytes) => write((before) => Buffer.concat([bytes, before.subarray(bytes.length)])),
        close: async () => void (isOpen = false),
      }
    },
    async read(key) {
      const file = files.get(checked(key))
      if (file === undefined) return null
      const size = file.length
      return {
        size,
        stream(from, to) {
          if (from < 0 || to >= size || from > to + 1) throw new RangeError(`bytes ${from} to ${to} of ${size}`)
          return new Blob([new Uint8Array(file.subarray(from, to + 1))]).stream()
        },
      }
    },
    async remove(key) {
      const removed = recordingForms.map((form) => files.delete(recordingKeyIn(form, key)))
      return removed.includes(true) ? 'removed' : 'absent'
    },
  }
}
