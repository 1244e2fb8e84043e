/**
 * Owns the port to wherever recordings are kept. A recording is named by the key of its sound, `<accountId>/<callId>.wav`; what is made of it has the
 * same key with another ending. Where a call went on by another leg there is a further part, `<accountId>/<callId>.<from>.wav`: it begins so many ms
 * after the answer. Who reads the recording of the call is given all its parts as one.
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
const keyForm = new RegExp(`^([\\w-]{1,64})/([\\w-]{1,64})(?:\\.(0|[1-9]\\d{0,8}))?\\.(${recordingForms.join('|')})$`)

export type RecordingName = {
  readonly accountId: string
  readonly callId: string
  /** Of a further part: ms from the answer to its beginning. Null: the recording as it was begun. */
  readonly from: number | null
  readonly form: RecordingForm
}

/** Throws for what is no key. */
export function recordingOfKey(key: string): RecordingName {
  const [, accountId, callId, from, form] = keyForm.exec(key) ?? []
  if (accountId === undefined || callId === undefined || form === undefined)
    throw new Error('a recording key reads <accountId>/<callId>.wav')
  return { accountId, callId, from: from === undefined ? null : Number(from), form: form as RecordingForm }
}

const keyOf = ({ accountId, callId, from, form }: RecordingName): string =>
  `${accountId}/${recordingFileOf({ callId, from, form })}`

/** Its name in the folder of its account. */
export const recordingFileOf = ({ callId, from, form }: Omit<RecordingName, 'accountId'>): string =>
  from === null ? `${callId}.${form}` : `${callId}.${from}.${form}`

/** The key of the same recording, or the same part of it, in this form. */
export const recordingKeyIn = (form: RecordingForm, key: string): string => keyOf({ ...recordingOfKey(key), form })

/** Of the sound of the call, whichever part of it the key names. */
export const wholeKeyOf = (key: string): string => keyOf({ ...recordingOfKey(key), from: null, form: 'wav' })

/** Of a part that begins so many ms after the answer. */
export const partKeyOf = (key: string, from: number): string =>
  keyOf({ ...recordingOfKey(key), from: Math.min(Math.max(0, Math.round(from)), latestPart) })

/** Eleven days; no call is as long. */
const latestPart = 999_999_999

/** Parts of one call in the order of the call. */
export const byBeginning = (one: string, other: string): number => beginningOf(one) - beginningOf(other)
const beginningOf = (key: string): number => recordingOfKey(key).from ?? -1

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

/** Of a call's recording: ms since the answer; `to` null: to its end. */
export type RecordingLack = {
  readonly from: number
  readonly to: number | null
  /** It is in a folder of another machine, and will be read once it is shipped. */
  readonly isComing: boolean
}

export type RecordingReader = {
  readonly size: number
  /** Parts of the call that cannot be read here; they are silence. Absent: none. */
  readonly lacks?: readonly RecordingLack[]
  /** Bytes `from`..`to`, both inclusive. */
  stream(from: number, to: number): ReadableStream<Uint8Array>
}

/** One part of a call's recording. `reader` null: it cannot be read here. */
export type ReadPart = {
  /** Ms since the answer. */
  readonly from: number
  readonly reader: RecordingReader | null
  readonly isComing: boolean
}

/** Makes one recording of the parts of a call, in their order. Null: there is no sound in any of them. */
export type JoinRecording = (parts: readonly ReadPart[]) => Promise<RecordingReader | null>

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
