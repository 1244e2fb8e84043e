/** `recordingAvailable` is true only when the recording can be played: what its file says counts, whatever the leg told. */
import { test } from 'tap'
import { playableMsOf } from '../../actors/after-call/playable.ts'
import { wavHeaderOf } from '../../media/recording/wav.ts'
import { createMemoryRecordings } from '../fake/memory-recordings.ts'

const key = 'account/call.wav'
const mono = { rateHz: 16_000, channels: 1 } as const

async function playable(...parts: readonly Uint8Array[]): Promise<number | null> {
  const recordings = createMemoryRecordings(new Map([[key, Buffer.concat(parts)]]))
  return playableMsOf((await recordings.read(key))!)
}

test('a recording with sound is as long as its header and its bytes both say', async (t) => {
  const second = new Uint8Array(32_000)
  t.equal(await playable(wavHeaderOf(mono, 32_000), second), 1_000)
  t.equal(await playable(wavHeaderOf({ ...mono, channels: 2 }, 32_000), second), 500)
  t.equal(await playable(wavHeaderOf(mono, 320_000), second), 1_000, 'cut by the disk')
  t.equal(await playable(wavHeaderOf(mono, 16_000), second), 500, 'what was written after the end of the call')
})

test('what a player finds no sound in is no recording', async (t) => {
  const second = new Uint8Array(32_000)
  t.equal(await playable(), null, 'an empty file')
  t.equal(await playable(wavHeaderOf(mono, 0).subarray(0, 20)), null, 'half a header')
  t.equal(await playable(wavHeaderOf(mono, 0)), null, 'a header alone')
  t.equal(await playable(wavHeaderOf(mono, 32_000)), null, 'a header that promises')
  t.equal(await playable(wavHeaderOf(mono, 0), second), null, 'a header that never learned its size')
  t.equal(await playable(new Uint8Array(44), second), null, 'a hole where the header should be')
})
