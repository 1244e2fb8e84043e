/**
 * Owns the port to wherever recordings are kept. A recording is named by the key of its sound, `<accountId>/<callId>.wav`; what is made of it has the
 * same key with another ending.
 */

/**
 * The sound itself, its compressed copy (Ogg Opus), the outline of its waveform (recording-peaks.ts), and what was captured of its packets, of which
 * there may be one without a recording.
 */
export const recordingForms = ['wav', 'opus', 'peaks', 'pcap'] as const
export type RecordingForm = (typeof recordingForms)[number]

/** What can be listened to, by its media type. */
export const soundTypes = { wav: 'audio/wav', opus: 'audio/ogg' } as const
export type SoundForm = keyof typeof soundTypes

/** What is written while a call runs; all else is made of it. */
export const isWritten = (form: RecordingForm): boolean => form === 'wav' || form === 'pcap'

/** Keys come from the database; one that leads elsewhere is a bug. */
const keyForm = new RegExp(`^([\\w-]{1,64})/([\\w-]{1,64})\\.(${recordingForms.join('|')})$`)

/** Throws for what is no key. */
export function recordingOfKey(key: string): {
  readonly accountId: string
  readonly callId: string
  readonly form: RecordingForm
} {
  const [, accountId, callId, form] = keyForm.exec(key) ?? []
  if (accountId === undefined || callId === undefined || form === undefined)
    throw new Error('a recording key reads <accountId>/<callId>.wav')
  return { accountId, callId, form: form as RecordingForm }
}

/** The key of the same recording in this form. */
export function recordingKeyIn(form: RecordingForm, key: string): string {
  const { accountId, callId } = recordingOfKey(key)
  return `${accountId}/${callId}.${form}`
}

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

/**
 * removed: every copy is gone. ordered: one is where it cannot be reached now (storage that is away, another process at work on it), the order
 * is written down, nobody can read it any more, and it goes as soon as it can be reached. absent: there was none.
 */
export type Removal = 'removed' | 'ordered' | 'absent'

export type RecordingStore = {
  /** Opens synchronously, so that the audio path never waits; the file is made with the first that is written to it. Of what is written only. */
  create(key: string): RecordingWriter
  /** In the form that the key names. Null when there is none. Throws Problem SERVICE_UNAVAILABLE while the storage that has it is away. */
  read(key: string): Promise<RecordingReader | null>
  /** The recording in every form, wherever it is kept. May be repeated. */
  remove(key: string): Promise<Removal>
}
