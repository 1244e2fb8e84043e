/**
 * What a telephone call that is answered and ended asks of the database until nothing of it is left to do, counted where it leaves the service: of
 * one call, and of each of a crowd.
 */
import { test } from 'tap'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { openRawSipCaller } from '../../tools/callers/raw-sip-caller.ts'
import { countSentStatements } from '../load/sent-statements.ts'
import { until } from '../scenes/in-time.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'

const crowd = 40
/** Nobody listens on that port. */
const nowhere = 1_999
/** Of a call that is alone, without those that the service sends at rest as well: its rounds, and what begins and ends transactions. */
const mostOfOne = 41
/** Of each call of a crowd, rounds and all. */
const mostOfMany = 9
const mostCommitsOfMany = 1

test('an inbound call sends few statements, and each of a crowd fewer', { timeout: 120_000 }, async (t) => {
  const sent = countSentStatements()
  const settings = { LOAD_GATE: 'off', RATE_LIMIT_PER_ADDRESS: '0', BAN_AFTER: '0' }
  const stage = await openPhoneStage(t, createHearingEngine({ tone: null }), { settings })
  const { sql } = stage.service
  const line = await stage.addLine({ events: false })
  const caller = await openRawSipCaller({ port: stage.port, called: line.number, calling: '+12025550150' })
  t.teardown(() => caller.close())
  let asked = 0
  const isAllDone = async (): Promise<boolean> => {
    asked++
    const [row] = await sql<{ left: number }[]>`
      select (select count(*) from calls where not finished) + (select count(*) from recordings where state = 'waiting') as left`
    return row?.left === 0
  }
  /** What is sent by then, by text and in all. */
  const callAtOnce = async (calls: number) => {
    const before = { byText: sent.byText(), count: sent.count() - asked }
    const placed = await Promise.all(Array.from({ length: calls }, () => caller.call(nowhere)))
    await Promise.all(placed.map((call) => call.hangUp()))
    await until(isAllDone)
    const own = [...sent.byText()].filter(([text]) => !before.byText.has(text))
    const commits = (sent.byText().get('commit') ?? 0) - (before.byText.get('commit') ?? 0)
    return { own, all: sent.count() - asked - before.count, commits }
  }
  await until(isAllDone)
  const one = await callAtOnce(1)
  const ofOne = one.own.reduce((sum, [, count]) => sum + count, 0)
  const texts = one.own.map(([text, count]) => `${count} × ${text.replaceAll(/\s+/g, ' ').trim().slice(0, 100)}`)
  t.ok(ofOne > 0 && ofOne <= mostOfOne, `${ofOne} statements of one call`, { texts })
  const many = await callAtOnce(crowd)
  const [perCall, commits] = [many.all / crowd, many.commits / crowd]
  t.ok(perCall <= mostOfMany, `${perCall.toFixed(1)} statements of each of ${crowd} calls`)
  t.ok(commits <= mostCommitsOfMany, `${commits.toFixed(2)} commits of each of ${crowd} calls`)
})
