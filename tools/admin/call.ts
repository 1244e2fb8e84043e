/** Owns the commands of calls. */
import { replay } from '../../actors/call/machine/replay.ts'
import { Problem } from '../../model/problem.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { idOf, required, type Commands } from './command.ts'

export const callCommands: Commands = {
  replay: {
    usage: 'replay <callId>',
    async runOn({ sql, print }, [text]) {
      const log = await listCallEvents(sql, idOf(required(text, 'callId'), 'callId'))
      if (log.length === 0) throw new Problem('NOT_FOUND', `there is no call ${text}`)
      const { facts, effects, ignored, differences } = replay(log)
      for (const { seq, fact, logged, replayed } of differences)
        print(`seq ${seq} ${fact.type}\n  logged   ${JSON.stringify(logged)}\n  replayed ${JSON.stringify(replayed)}`)
      const verdict = differences.length === 0 ? 'identical' : `${differences.length} differ`
      print(`${facts} facts (${ignored} ignored), ${effects} effects: ${verdict}`)
      return differences.length === 0 ? 0 : 1
    },
  },
}
