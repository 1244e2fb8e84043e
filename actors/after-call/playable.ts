/** Owns whether a recording can be played: what its own file says, whatever was told of it. */
import { wavHeaderBytes, wavSoundOf } from '../../media/recording/wav.ts'
import type { RecordingReader } from '../../model/recording-store.ts'

/** Milliseconds; null when a player finds no sound in it. */
export async function playableMsOf(recording: RecordingReader): Promise<number | null> {
  if (recording.size <= wavHeaderBytes) return null
  const head = await new Response(recording.stream(0, wavHeaderBytes - 1)).arrayBuffer()
  return wavSoundOf(new Uint8Array(head), recording.size)?.ms ?? null
}
