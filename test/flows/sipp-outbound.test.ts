/** Calls of the service to a carrier that sipp plays, against the whole service: how each ends, and what is tried before it does. */
import { test } from 'tap'
import { createTrunks } from '../../store/trunks.ts'
import { systemClock } from '../../app/clock.ts'
import { newId } from '../../app/core.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { freePorts } from '../peers/peer-program.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'
import { startSipp, withoutSipp } from '../peers/sipp.ts'
import { until } from '../scenes/in-time.ts'

const skip = withoutSipp()
const callee = '+4930111222'
type Gateway = { readonly host: string; readonly port: number; readonly transport?: 'udp' | 'tcp' }
const at = (port: number, transport: 'udp' | 'tcp' = 'udp'): Gateway => ({ host: '127.0.0.1', port, transport })

test('the service calls over sipp', { skip, timeout: 100_000 }, async (t) => {
  const engine = createHearingEngine({ tone: null })
  const registrar = await startSipp(t, 'registrar')
  const login = { username: 'ada', password: 'secret' }
  // It is there when the service starts: trunks that come later wait for the next look of the node.
  const lines = [{ trunk: { ...login, gateways: [at(registrar.port)], register: true } }]
  const scene = await openPhoneStage(t, engine, { lines })
  const registering = scene.lines[0]!
  const { addLine, rest, service, accountId } = scene

  await t.test('a callee over UDP and TCP hangs up, or is hung up', async (t) => {
    const exchange = async (transport: 'udp' | 'tcp', who: 'callee-hangs-up' | 'callee-is-hung-up') => {
      const sipp = await startSipp(t, who, { transport })
      const line = await addLine({ trunk: { gateways: [at(sipp.port, transport)] } })
      const callId = await line.dial(callee)
      await line.status('in_progress')
      if (who === 'callee-is-hung-up') await rest('POST', `/phone-calls/${callId}/hangup`)
      await sipp.done
      const { row, told, statuses } = await line.ended()
      t.match(
        row,
        { id: callId, direction: 'outbound', outcome: 'completed', trunkId: line.trunkId },
        `${transport} ${who}`,
      )
      t.match(row, { fromNumber: line.number, toNumber: callee, providerStatus: '200 OK' })
      t.match(told, { status: 'completed', direction: 'outbound' })
      t.same(statuses, ['queued', 'ringing 180 Ringing', 'in_progress 200 OK', 'completed 200 OK'])
    }
    const kinds = ['callee-hangs-up', 'callee-is-hung-up'] as const
    await Promise.all(kinds.flatMap((who) => [exchange('udp', who), exchange('tcp', who)]))
  })

  await t.test('every refusal has its outcome, its reason and the words of the carrier', async (t) => {
    const refusals = [
      [486, 'busy', null],
      [600, 'busy', null],
      [480, 'no_answer', null],
      [603, 'no_answer', null],
      [404, 'failed', 'carrier_call_failed'],
      [604, 'failed', 'carrier_call_failed'],
      [484, 'failed', 'carrier_call_failed'],
      [500, 'failed', 'carrier_call_failed'],
      [503, 'failed', 'carrier_call_failed'],
      [408, 'failed', 'sip_call_failed'],
      [403, 'failed', 'sip_call_failed'],
      [488, 'failed', 'sip_call_failed'],
      [302, 'failed', 'carrier_call_failed'],
    ] as const
    const check = async ([status, outcome, reason]: (typeof refusals)[number]) => {
      const sipp = await startSipp(t, 'callee-refuses', { words: { status } })
      const line = await addLine({ trunk: { gateways: [at(sipp.port)] } })
      await line.dial(callee)
      await sipp.done
      const { row, told } = await line.ended()
      t.match(row, { outcome, status: 'completed', providerStatus: `${status} As dialed` }, `${status} is ${outcome}`)
      t.equal(row['failedReason'], reason ?? undefined, `${status}: ${String(reason)}`)
      t.match(told, { status: outcome, recordingAvailable: false })
      t.equal(told['failedReason'], reason ?? undefined)
    }
    await Promise.all(refusals.map(check))
  })

  await t.test('words and causes say more than the status', async (t) => {
    const blocks = [
      [603, 'Network Blocked', 21, 'failed'],
      [500, 'Internal', 17, 'busy'],
      [503, 'Unavailable', 1, 'failed'],
      [480, 'Unavailable', 17, 'busy'],
    ] as const
    const check = async ([status, words, cause, outcome]: (typeof blocks)[number]) => {
      const sipp = await startSipp(t, 'callee-blocks', { words: { status, words, cause } })
      const line = await addLine({ trunk: { gateways: [at(sipp.port)] } })
      await line.dial(callee)
      t.match(
        (await line.ended()).row,
        { outcome, providerStatus: `${status} ${words}` },
        `${status} ${words} ${cause}`,
      )
      await sipp.done
    }
    await Promise.all(blocks.map(check))
  })

  await t.test('a call without a number to call, or to call from, fails for that', async (t) => {
    const line = await addLine({ trunk: { gateways: [at(9)] } })
    await line.dial()
    const { row, told } = await line.ended()
    t.match(row, { outcome: 'failed', failedReason: 'missing_phone_numbers' })
    t.match(told, { status: 'failed', failedReason: 'missing_phone_numbers' })
    const numberless = await addLine({ from: null, trunk: { gateways: [at(9)] } })
    await numberless.dial(callee)
    t.match((await numberless.ended()).row, { outcome: 'failed', failedReason: 'missing_phone_numbers' })
  })

  await t.test('a gateway that is not there fails, and the next one is asked', async (t) => {
    const nobody = at(await freePorts(1), 'tcp')
    const alone = await addLine({ trunk: { gateways: [nobody] } })
    await alone.dial(callee)
    t.match((await alone.ended()).row, { outcome: 'failed', failedReason: /^(sip|carrier)_call_failed$/ })
    const [down, up] = [
      await startSipp(t, 'callee-refuses', { words: { status: 503 } }),
      await startSipp(t, 'callee-hangs-up'),
    ]
    const line = await addLine({ trunk: { gateways: [nobody, at(down.port), at(up.port)] } })
    await line.dial(callee)
    await Promise.all([down.done, up.done])
    t.match((await line.ended()).row, { outcome: 'completed', providerStatus: '200 OK' })
  })

  await t.test('a callee that is busy is not asked by another gateway', async (t) => {
    const busy = await startSipp(t, 'callee-refuses', { words: { status: 486 } })
    const line = await addLine({ trunk: { gateways: [at(busy.port), at(9)] } })
    await line.dial(callee)
    t.match((await line.ended()).row, { outcome: 'busy' })
    await busy.done
  })

  await t.test('nobody answers in time: CANCEL, no_answer', async (t) => {
    const sipp = await startSipp(t, 'callee-rings')
    const line = await addLine({ trunk: { gateways: [at(sipp.port)] }, worker: { ringTimeout: 1 } })
    await line.dial(callee)
    await sipp.done
    const { row, told, statuses } = await line.ended()
    t.match(row, { outcome: 'no_answer' })
    t.match(told, { status: 'no_answer', recordingAvailable: false })
    t.match(statuses.slice(0, 2), ['queued', 'ringing 180 Ringing'])
  })

  await t.test('the account hangs up while it rings: CANCEL, canceled', async (t) => {
    const sipp = await startSipp(t, 'callee-rings')
    const line = await addLine({ trunk: { gateways: [at(sipp.port)] } })
    const callId = await line.dial(callee)
    await line.status('ringing')
    await rest('POST', `/phone-calls/${callId}/hangup`)
    await sipp.done
    t.match((await line.ended()).row, { outcome: 'canceled' })
  })

  await t.test('a challenge by 401 and by 407 is answered', async (t) => {
    const prove = async (words: Readonly<Record<string, string | number>>) => {
      const sipp = await startSipp(t, 'callee-asks-password', { words })
      const trunk = { gateways: [at(sipp.port)], ...login }
      const line = await addLine({ trunk })
      const callId = await line.dial(callee)
      // A proof that is refused ends sipp.
      await Promise.race([line.status('in_progress'), sipp.done])
      await rest('POST', `/phone-calls/${callId}/hangup`)
      await sipp.done
      t.match((await line.ended()).row, { outcome: 'completed' }, String(words['status']))
    }
    await Promise.all([
      prove({ status: 401, asks: 'WWW-Authenticate', proof: 'Authorization', decides: 'proved' }),
      prove({ status: 407, asks: 'Proxy-Authenticate', proof: 'Proxy-Authorization', decides: 'proof' }),
    ])
  })

  await t.test('a password that is refused is sip_call_failed', async (t) => {
    const sipp = await startSipp(t, 'callee-refuses-password')
    const line = await addLine({ trunk: { gateways: [at(sipp.port)], username: 'ada', password: 'wrong' } })
    await line.dial(callee)
    const { row } = await line.ended()
    t.match(row, { outcome: 'failed', failedReason: 'sip_call_failed', providerStatus: '401 Unauthorized' })
    await sipp.done
  })

  await t.test('the worker passes the callee on: REFER, NOTIFYs, our BYE', async (t) => {
    const sipp = await startSipp(t, 'callee-is-transferred')
    const line = await addLine({ trunk: { gateways: [at(sipp.port)] } })
    await service.sql`update accounts set config = config || '{"allowedTransferNumbers":["+4930777"]}' where id = ${accountId}`
    const phoneCallId = await line.dial(callee)
    await line.status('in_progress')
    const asked = { toolName: 'transfer', provider: 'call', arguments: { to: '+4930777' }, phoneCallId }
    const answer = await rest('POST', `/workers/${line.workerId}/mcp/tools/call`, asked)
    t.match(answer, { result: { status: 'success' } })
    await sipp.done
    t.match((await line.ended()).row, { outcome: 'completed' })
  })

  await t.test('a trunk registers with its password', async (t) => {
    const trunks = createTrunks({ ...service, clock: systemClock, newId })
    await registrar.seen('SIP/2.0 200')
    const registered = await until(async () => {
      const state = await trunks.stateOf(accountId, registering.trunkId)
      return state?.registration === 'registered' && state
    })
    t.match(registered, { registrationDetails: '200 OK' })
  })

  await t.test('and takes its registration back when the service ends', async () => {
    await service.close()
    await registrar.done
  })
})
