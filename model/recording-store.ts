/** Owns the port to wherever recordings are kept. A key is `<accountId>/<callId>.wav`. */

export type RecordingWriter = {
  /** Queues bytes at the end; never waits. Past a bounded backlog the writer gives up, logs once and ignores what follows. */
  append(bytes: Uint8Array): void
  /** Queues an overwrite at the beginning, after everything appended so far. The way a WAV header learns its sizes. */
  overwriteStart(bytes: Uint8Array): void
  /** Resolves when everything is on disk. Idempotent. */
  close(): Promise<void>
  /** False: something of it was lost, because the disk was full, too slow or broken. Absent: nothing can be. */
  isWhole?(): boolean
}

export type RecordingReader = {
  readonly size: number
  /** Bytes `from`..`to`, both inclusive. */
  stream(from: number, to: number): ReadableStream<Uint8Array>
}

export type RecordingStore = {
  /** Opens synchronously, so that the audio path never waits; the file is made in the background. */
  create(key: string): RecordingWriter
  /** Null when there is none. */
  read(key: string): Promise<RecordingReader | null>
}
