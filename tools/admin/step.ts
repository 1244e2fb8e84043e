/** Owns the commands of kept steps: what was put aside because nobody could write it any more. docs/design/database-away.md "The files" */
import { listAside, forgetAside, journalFolderOf } from '../../store/journal-folder.ts'
import { stepOfText } from '../../actors/call/call-step.ts'
import type { AdminDatabase, Commands } from './command.ts'

export const stepCommands: Commands = {
  'steps forget': {
    usage: 'steps forget',
    async runOn({ home, print }) {
      print((await forgetAside(folderOf(home))) ? 'forgotten' : 'nothing was put aside')
      return 0
    },
  },
  steps: {
    usage: 'steps',
    async runOn({ home, print }) {
      const folder = folderOf(home)
      const counts = new Map<string, number>()
      let damaged = 0
      await listAside(folder, (line) => {
        const of = callOf(line)
        if (of === null) damaged++
        else counts.set(of, (counts.get(of) ?? 0) + 1)
      })
      for (const [of, count] of counts) print(`${of}  ${count}`)
      if (damaged > 0) print(`${damaged} cannot be read`)
      print(counts.size + damaged === 0 ? 'nothing was put aside' : `in ${folder}`)
      return 0
    },
  },
}

function folderOf(home: AdminDatabase['home']): string {
  if (!home) throw new Error('the folder of kept steps is found by the settings of the service')
  return journalFolderOf(home.dataDir)
}

/** Null: it is damaged. What was said in the call is told to nobody. */
function callOf(line: string): string | null {
  try {
    const { callId, epoch } = stepOfText(line).tenure
    return `${callId}  epoch ${epoch}`
  } catch {
    return null
  }
}
