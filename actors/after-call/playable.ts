/** Owns whether a recording can be played: what its own file says, whatever was told of it. */
import { readWavHeader, wavHeaderBytes, wavSoundOf } from '../../media/recording/wav.ts'
import type { RecordingReader } from '../../model/recording-store.ts'

/** Milliseconds; null when a player finds no sound in it. */
export async function playableMsOf(recording: RecordingReader): Promise<number | null> {
  if (recording.size <= wavHeaderBytes) return null
  return wavSoundOf(await readWavHeader(recording), recording.size)?.ms ?? null
}
