/** Owns spoken sentences by their text: the least recently used go when the bytes are too many. */

export type SoundCache = {
  get(key: string): Int16Array<ArrayBuffer> | undefined
  put(key: string, samples: Int16Array<ArrayBuffer>): void
}

export function createSoundCache(maxBytes: number): SoundCache {
  const sounds = new Map<string, Int16Array<ArrayBuffer>>()
  let bytes = 0
  const forget = (key: string): void => {
    bytes -= sounds.get(key)?.byteLength ?? 0
    sounds.delete(key)
  }
  return {
    get(key) {
      const samples = sounds.get(key)
      if (samples === undefined) return undefined
      sounds.delete(key)
      sounds.set(key, samples)
      return samples
    },
    put(key, samples) {
      forget(key)
      if (samples.byteLength > maxBytes) return
      sounds.set(key, samples)
      bytes += samples.byteLength
      for (const oldest of sounds.keys()) {
        if (bytes <= maxBytes) return
        forget(oldest)
      }
    },
  }
}
