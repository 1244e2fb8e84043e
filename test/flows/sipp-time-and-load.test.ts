/** Calls that last, and calls that come in crowds, by sipp: session timers of both sides on a clock that leaps, and what comes of 200 calls a second. */
import { test, type Test } from 'tap'
import { mostSetUps } from '../../actors/node/set-ups.ts'
import { openCallSide } from '../../app/call-side.ts'
import { systemClock } from '../../app/clock.ts'
import { readConfig } from '../../app/config.ts'
import { openCore } from '../../app/core.ts'
import { openGuard } from '../../app/guard.ts'
import { openMediaSide } from '../../app/media-side.ts'
import { openPhoneSide } from '../../app/phone-side.ts'
import { openTestDatabase } from '../scenes/database.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { createLeapingClock } from '../fake/leaping-clock.ts'
import { freePorts } from '../peers/peer-program.ts'
import { openPhoneStage, outcomesOf } from '../scenes/phone-stage.ts'
import { createQuietLog } from '../fake/quiet-log.ts'
import { startSipp, withoutSipp } from '../peers/sipp.ts'
import { addTrunk } from '../scenes/telephony.ts'
import { createTenant } from '../scenes/tenant.ts'
import { until } from '../scenes/in-time.ts'
import { soundThreads } from '../scenes/sound-threads.ts'

const skip = withoutSipp()

test('sessions are refreshed by who should, and end when nobody does', { skip, timeout: 180_000 }, async (t) => {
  const { to, number, talking, clock, workerId, sql } = await openTimedService(t)

  await t.test('we refresh at half time', async (t) => {
    const sipp = await startSipp(t, 'caller-is-refreshed', { to, number })
    await talking(1)
    clock.leap(45_000)
    await sipp.done
    await talking(0)
    t.same(await outcomesOf(sql, workerId), { completed: 1 })
  })

  await t.test('the caller refreshes, then forgets to, and is hung up', async (t) => {
    const sipp = await startSipp(t, 'caller-refreshes', { to, number, pause: 1_000 })
    await talking(1)
    clock.leap(50_000)
    await sipp.seen('UPDATE ')
    await sipp.seen('SIP/2.0 200', 2)
    clock.leap(50_000)
    await talking(1)
    // Not much beyond the end at 60 s: what is sent there is still on its way when the leap is over.
    clock.leap(10_000)
    await sipp.done
    await talking(0)
    // Nobody hung up: whoever does not refresh any more is gone.
    t.same(await outcomesOf(sql, workerId), { completed: 1, failed: 1 })
  })
})

/** The service without its front door; SIP lives by a clock of its own. */
async function openTimedService(t: Test) {
  const database = await openTestDatabase(t)
  const closing = new AsyncDisposableStack()
  const to = await freePorts(2)
  const config = readConfig({
    ...soundThreads(),
    SIP_PORT: String(to),
    SIP_TLS_PORT: String(to + 1),
    DATA_DIR: database.dataDir,
  })
  const { sip } = config
  if (!sip) throw new Error('the settings have no SIP')
  const core = await openCore({ ...config, databaseUrl: database.databaseUrl }, { log: createQuietLog() }, closing)
  const engines = new Map([['embedded', createHearingEngine({ tone: null })]] as const)
  const calls = openCallSide(core, config, engines, closing)
  const media = await openMediaSide(core, config, closing)
  const clock = createLeapingClock(systemClock)
  const guard = openGuard(core, config, closing)
  const parts = { core: { ...core, clock }, config: { ...config, sip }, calls, media, guard }
  const phones = await openPhoneSide(parts, closing)
  await calls.start()
  t.teardown(async () => {
    await calls.end(0)
    await closing.disposeAsync()
  })
  const { sql } = core
  const number = '+12025550001'
  const tenant = await createTenant(sql, { script: 'Say nothing.' })
  await sql`update workers set inbound_phone_number = ${number} where id = ${tenant.workerId}`
  await addTrunk(sql, tenant, { gateways: [], allowedAddresses: ['127.0.0.1'], qualify: false })
  const talking = (count: number) =>
    until(async () => {
      const rows = await sql`select from calls where progress = 'in_progress' and outcome is null`
      return rows.count === count && phones.health().calls === count
    })
  return { to, number, talking, clock, workerId: tenant.workerId, sql }
}

test('a crowd of calls is taken, each ends right', { skip, timeout: 240_000 }, async (t) => {
  // As many at once as are set up and may wait for their turn however slow the machine is: the rate that comes of it is the machine's, and nobody is
  // told to come later. The gate before new calls is off.
  const calls = 400
  const { port, addLine, service } = await openPhoneStage(t, createHearingEngine({ tone: null }), {
    settings: { LOAD_GATE: 'off' },
  })
  const line = await addLine({ events: false })
  const began = performance.now()
  const many = { calls, rate: 200, atOnce: 2 * mostSetUps, pause: 100, quiet: true, within: 200 }
  const sipp = await startSipp(t, 'caller-hangs-up', { to: port, number: line.number, ...many })
  await sipp.done
  const seconds = (performance.now() - began) / 1000
  t.comment(`${calls} calls in ${seconds.toFixed(1)} s: ${Math.round(calls / seconds)} calls a second`)
  t.same(await outcomesOf(service.sql, line.workerId), { completed: calls })
})
