/** Owns the commands of captures that are asked for in advance. docs/observability.md "Captures of calls to come". */
import { newId } from '../../app/core.ts'
import { toIso } from '../../model/clock.ts'
import type { AccountId, WorkerId } from '../../model/ids.ts'
import { Problem } from '../../model/problem.ts'
import { mostBytesOf, StandingCaptureWish, type StandingCapture } from '../../model/standing-capture.ts'
import { findAccount } from '../../store/accounts.ts'
import type { Sql } from '../../store/sql.ts'
import { endStandingCapture, listStandingCaptures, setStandingCapture } from '../../store/standing-captures.ts'
import { findWorker } from '../../store/workers.ts'
import { accountOf, checked, idOf, numberOf, textOf, type Commands } from './command.ts'

type Whose = { readonly accountId: AccountId; readonly workerId: WorkerId | null }

async function whoseOf(sql: Sql, [account, worker]: readonly string[]): Promise<Whose> {
  const accountId = await accountOf(sql, account)
  if (worker === undefined) return { accountId, workerId: null }
  const workerId = idOf<'worker'>(worker, 'workerId')
  if (!(await findWorker(sql, accountId, workerId))) throw new Problem('NOT_FOUND', 'the account has no such worker')
  return { accountId, workerId }
}

const nameOf = ({ accountId, workerId }: Whose): string =>
  workerId === null ? `all workers of account ${accountId}` : `worker ${workerId} of account ${accountId}`

function lineOf(capture: StandingCapture, now: number): string {
  const { rtp, minutes, mostCalls, callIds, endsAt } = capture
  const isOver = endsAt <= now || callIds.length >= mostCalls
  return `${nameOf(capture)}: ${isOver ? 'over' : 'on'} until ${toIso(endsAt)}, ${callIds.length} of ${mostCalls} calls, ${rtp}, ${minutes} minutes of each`
}

export const captureCommands: Commands = {
  'capture on': {
    usage:
      'capture on <accountId> [workerId] --hours <1 to 168> [--calls <1 to 200; 20>] [--minutes <1 to 60 of each call; 10>]\n' +
      '    [--rtp headers|sound]',
    options: {
      hours: { type: 'string' },
      calls: { type: 'string' },
      minutes: { type: 'string' },
      rtp: { type: 'string' },
    },
    async runOn({ sql, print }, given, options) {
      if (textOf(options, 'hours') === undefined)
        throw new Problem('VALIDATION_FAILED', '--hours is missing: a capture of calls to come has an end')
      const wish = checked(StandingCaptureWish, {
        hours: numberOf(options, 'hours', { least: 1, most: 168 }),
        calls: numberOf(options, 'calls', { least: 1, most: 200 }),
        minutes: numberOf(options, 'minutes', { least: 1, most: 60 }),
        rtp: textOf(options, 'rtp'),
      })
      const whose = await whoseOf(sql, given)
      const account = await findAccount(sql, whose.accountId)
      if (wish.rtp === 'sound' && account?.config.captureSound !== true)
        throw new Problem(
          'VALIDATION_FAILED',
          `--rtp sound needs the account's permission: account limits ${whose.accountId} --capture-sound on`,
        )
      const { endsAt } = await setStandingCapture(sql, { ...whose, wish, newId, now: Date.now() })
      const { calls, rtp, minutes } = wish
      print(
        `The next ${calls} calls of ${nameOf(whose)} that are answered until ${toIso(endsAt)} are captured: ${rtp}, ${minutes} minutes of each.\n` +
          `Each costs a statement at its answer and a copy of every packet; together they take ${Math.ceil(mostBytesOf(wish) / 1e6)} MB of the disk at most.`,
      )
      return 0
    },
  },
  'capture off': {
    usage: 'capture off <accountId> [workerId]',
    async runOn({ sql, print }, given) {
      const whose = await whoseOf(sql, given)
      const isEnded = await endStandingCapture(sql, whose)
      print(
        isEnded
          ? 'No further calls are captured; what was captured stays with its calls.'
          : `no captures were asked for of ${nameOf(whose)}`,
      )
      return isEnded ? 0 : 1
    },
  },
  'capture list': {
    usage: 'capture list [accountId]',
    async runOn({ sql, print }, [account]) {
      const accountId = account === undefined ? null : await accountOf(sql, account)
      const captures = await listStandingCaptures(sql, accountId)
      for (const capture of captures) {
        print(lineOf(capture, Date.now()))
        for (const callId of capture.callIds) print(`  ${callId}`)
      }
      if (captures.length === 0) print('no captures are asked for')
      return 0
    },
  },
}
