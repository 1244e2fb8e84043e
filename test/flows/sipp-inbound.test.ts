/** Calls of a carrier, as sipp places them, against the whole service: what comes in, what is refused, and what a caller may ask meanwhile. */
import { test } from 'tap'
import { listAllRefusals } from '../../store/call-refusals.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { openPhoneStage, outcomesOf, type PhoneStage } from '../scenes/phone-stage.ts'
import { createRtpPeer } from '../fake/rtp-peer.ts'
import { startSipp, withoutSipp } from '../peers/sipp.ts'
import { until } from '../scenes/in-time.ts'

const skip = withoutSipp()

test('a carrier calls over sipp', { skip, timeout: 100_000 }, async (t) => {
  const engine = createHearingEngine({ tone: 440, seconds: 0.4 })
  const scene = await openPhoneStage(t, engine)
  const { port, addLine, rest } = scene
  /** The number that was called, and what is to be read of it in the end: they are written down every few seconds. */
  const refusals: (readonly [called: string, wanted: object])[] = []

  for (const transport of ['udp', 'tcp'] as const) {
    await t.test(`a caller over ${transport} talks and hangs up`, async (t) => {
      const line = await addLine()
      await (
        await startSipp(t, 'caller-hangs-up', { to: port, number: line.number, transport })
      ).done
      const { row, told } = await line.ended()
      t.match(row, { direction: 'inbound', status: 'completed', outcome: 'completed', toNumber: line.number })
      t.match(row, { fromNumber: '+4915112345678', trunkId: line.trunkId, providerStatus: '200 OK' })
      t.match(told, { status: 'completed', direction: 'inbound' })
    })

    await t.test(`a caller over ${transport} is hung up`, async (t) => {
      const line = await addLine()
      const sipp = await startSipp(t, 'caller-is-hung-up', { to: port, number: line.number, transport })
      const { callId } = await line.status('in_progress')
      await rest('POST', `/phone-calls/${String(callId)}/hangup`)
      await sipp.done
      t.match((await line.ended()).row, { outcome: 'completed' })
    })
  }

  await t.test('the agent hangs up when the conversation is over', async (t) => {
    const line = await addLine()
    const sipp = await startSipp(t, 'caller-is-hung-up', { to: port, number: line.number })
    await line.status('in_progress')
    const session = await engine.of(line.number)
    session.emit({ type: 'item_done', itemId: 'tone' })
    session.emit({ type: 'finished', nextAction: null })
    await sipp.done
    t.match((await line.ended()).row, { outcome: 'completed' })
  })

  await t.test('a caller cancels while it rings', async (t) => {
    const line = await addLine()
    const release = engine.hold(line.number)
    await (
      await startSipp(t, 'caller-cancels', { to: port, number: line.number })
    ).done
    release()
    const { row } = await line.ended()
    t.match(row, { direction: 'inbound', status: 'completed', outcome: 'canceled' })
  })

  await t.test('OPTIONS is answered with what we can, REGISTER is refused', async (t) => {
    await (
      await startSipp(t, 'caller-asks-options', { to: port })
    ).done
    await (
      await startSipp(t, 'caller-asks-options', { to: port, transport: 'tcp' })
    ).done
    await t.resolves((await startSipp(t, 'caller-registers', { to: port })).done)
  })

  await t.test('a caller from an allowed address proves the password of the trunk, or is refused', async (t) => {
    const trunk = { username: 'ada', password: 'secret', realm: 'carrier.example', authenticateInbound: true }
    const line = await addLine({ trunk })
    const to = { to: port, number: line.number }
    await (
      await startSipp(t, 'caller-proves-password', { ...to, login: { username: 'ada', password: 'secret' } })
    ).done
    t.match((await line.ended()).row, { outcome: 'completed' })
    await (
      await startSipp(t, 'caller-fails-password', { ...to, login: { username: 'ada', password: 'wrong' } })
    ).done
    refusals.push([line.number, { reason: 'wrong_credentials', sipStatus: 403, trunkId: line.trunkId }])
  })

  await t.test('a caller from nowhere we know proves the password of the trunk', async (t) => {
    const trunk = { username: 'ada', password: 'secret', allowedAddresses: [] }
    const line = await addLine({ trunk })
    const login = { username: 'ada', password: 'secret' }
    await (
      await startSipp(t, 'caller-proves-password', { to: port, number: line.number, login })
    ).done
    t.match((await line.ended()).row, { outcome: 'completed' })
  })

  await t.test('a number of nobody is refused', async (t) => {
    await (
      await startSipp(t, 'caller-is-refused', { to: port, number: '+12025559999' })
    ).done
    refusals.push(['+12025559999', { reason: 'unknown_number', sipStatus: 404 }])
  })

  await t.test('holds, keys, refreshes and refused transfers within one call', async (t) => {
    const line = await addLine()
    const sipp = await startSipp(t, 'caller-changes-call', { to: port, number: line.number })
    await sipp.done
    t.same((await engine.of(line.number)).digits, ['5'], 'the key by INFO reaches the engine')
    t.match((await line.ended()).row, { outcome: 'completed' })
    refusals.push(['4930123456', { direction: 'outbound', reason: 'destination_not_allowed', sipStatus: 603 }])
  })

  await t.test('an INVITE without an offer gets ours', async (t) => {
    const line = await addLine()
    await (
      await startSipp(t, 'caller-without-offer', { to: port, number: line.number })
    ).done
    t.match((await line.ended()).row, { outcome: 'completed', providerStatus: '200 OK' })
  })

  await t.test('a fax is refused, and beside sound it is left out', async (t) => {
    const line = await addLine()
    await (
      await startSipp(t, 'caller-offers-image', { to: port, number: line.number })
    ).done
    refusals.push([line.number, { reason: 'not_acceptable_here', sipStatus: 488 }])
    await (
      await startSipp(t, 'caller-offers-several', { to: port, number: line.number })
    ).done
    t.match((await line.ended()).row, { outcome: 'completed' })
  })

  await t.test('packets are as long as the caller wants them', async (t) => {
    const line = await addLine()
    const peer = await createRtpPeer()
    t.teardown(() => peer.close())
    const words = { listener: peer.local.port }
    const sipp = await startSipp(t, 'caller-packets-of-40', { to: port, number: line.number, words, pause: 500 })
    const packets: Buffer[] = []
    while (packets.length < 6) packets.push((await peer.next()).bytes)
    const sizes = packets.map(({ length }) => length - 12)
    const steps = packets.slice(1).map((next, at) => next.readUInt32BE(4) - packets[at]!.readUInt32BE(4))
    // What waited for the rest of its packet when the agent began goes out shorter.
    t.ok(sizes.filter((size) => size === 320).length >= 5, `40 ms at 8 kHz: ${sizes.join(' ')}`)
    t.same(steps, sizes.slice(0, -1), 'and the clock counts them')
    await sipp.done
    t.match((await line.ended()).row, { outcome: 'completed' })
  })

  await t.test('every refusal is written down with its reason', async (t) => {
    for (const [called, wanted] of refusals) t.match(await refusalOf(scene, called), wanted, called)
    t.equal(refusals.length, 4)
  })

  await t.test('of what sipp loses nothing is lost', async (t) => {
    const line = await addLine({ events: false })
    const began = performance.now()
    const many = { calls: 40, rate: 40, lost: 15, quiet: true, pause: 1_500 }
    const sipp = await startSipp(t, 'caller-hangs-up', { to: port, number: line.number, ...many })
    await sipp.done
    t.comment(`40 calls at 15 % loss took ${Math.round(performance.now() - began)} ms`)
    t.same(await outcomesOf(scene.service.sql, line.workerId), { completed: 40 })
  })
})

const refusalOf = ({ service }: PhoneStage, called: string) =>
  until(async () => {
    const found = await listAllRefusals(service.sql, { accountId: null, limit: 1_000 })
    return found.find((one) => one.called?.includes(called.replace('+', '')))
  })
