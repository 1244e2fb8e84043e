/** Owns the commands of recordings: how many wait for the storage, and why. */
import { toIso } from '../../model/clock.ts'
import { countRecordings, reopenRecordings, type RecordingState } from '../../store/recording-rows.ts'
import type { Commands } from './command.ts'

const meanings: Readonly<Record<RecordingState, string>> = {
  waiting: 'wait for their copies or the storage; they are in their folder',
  kept: 'are in their folder, to stay',
  shipped: 'are in the storage',
  failed: 'were given up, and are in their folder; `recordings retry` tries them again',
  removing: 'are ordered to be removed, and could not be reached yet',
}

export const recordingCommands: Commands = {
  'recordings retry': {
    usage: 'recordings retry',
    async runOn({ sql, print }) {
      const count = await reopenRecordings(sql, { folder: null, ships: false, now: Date.now() })
      print(`${count} recordings that were given up are tried again`)
      return 0
    },
  },
  recordings: {
    usage: 'recordings',
    async runOn({ sql, print }) {
      const states = await countRecordings(sql)
      for (const { state, count, oldest, problem } of states)
        print(
          `${state}: ${count} ${meanings[state]}; the oldest is of ${toIso(oldest)}${problem === null ? '' : `; last problem: ${problem}`}`,
        )
      if (states.length === 0) print('there are no recordings')
      return 0
    },
  },
}
