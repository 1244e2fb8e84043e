/**
 * Owns a process that records: a leg's recording of 8 kHz on the real beat, in a folder, as a call makes it. Each sample of the agent tells the second
 * it belongs to. It says how far it has come ten times a second, until it is killed.
 */
import process from 'node:process'
import { systemClock as clock } from '../../app/clock.ts'
import { createRecording } from '../../media/recording/recording.ts'
import { createTicker } from '../../media/ticker/ticker.ts'
import { createRecordingFolder } from '../../store/recording-folder.ts'
import { createQuietLog } from '../fake/quiet-log.ts'

const [, , folder = '', key = ''] = process.argv
const now = () => performance.now()
const recordings = createRecordingFolder({ folder, clock, log: createQuietLog() })
const startedAt = now()
const recording = createRecording({ writer: recordings.create(key), mode: 'mixed', startedAt, clockRateHz: 8000 })

// Timers of the service keep no process alive.
process.on('message', () => undefined)
createTicker({ now, after: clock.after }).join((at) => {
  const ms = at - startedAt
  recording.agent(new Int16Array(160).fill(1000 * (1 + Math.floor(ms / 1000))), at, 8000)
  recording.tick(at)
  if (Math.floor(ms / 100) !== Math.floor((ms - 20) / 100)) process.send?.(ms)
})
