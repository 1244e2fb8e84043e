/**
 * kamailio between the telephones and the service: as a proxy that stays in the way, with and without topology hiding, over UDP and TCP; and
 * as a registrar, for the telephones that the service calls and for the service itself.
 */
import { test, type Test } from 'tap'
import { createHearingEngine, engineRateHz, type HearingSession } from '../fake/hearing-engine.ts'
import { baresipUser, dominantHertz, startBaresip, withoutBaresip, type Baresip } from '../peers/baresip.ts'
import { startKamailio, withoutKamailio } from '../peers/kamailio.ts'
import { until } from '../scenes/in-time.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'

const skip = withoutKamailio() || withoutBaresip()
const tones = { phone: 440, service: 880 } as const
const codec = 'pcma'
const password = 'secret'

test('kamailio as a proxy', { skip, timeout: 100_000 }, async (t) => {
  const engine = createHearingEngine({ tone: tones.service })
  const { addLine, port, rest } = await openPhoneStage(t, engine)
  const proxies = [
    { name: 'over UDP', transport: 'udp', hidesTopology: false },
    { name: 'over UDP, hiding the topology', transport: 'udp', hidesTopology: true },
    { name: 'over TCP', transport: 'tcp', hidesTopology: false },
  ] as const

  for (const { name, transport, hidesTopology } of proxies) {
    const kamailio = await startKamailio(t, { service: { port, transport }, password, hidesTopology })

    await t.test(`a call comes through it ${name}, with sound both ways; the caller hangs up`, async (t) => {
      const phone = await startBaresip(t, { tone: tones.phone, codec })
      const line = await addLine()
      phone.dial(`sip:${line.number}@127.0.0.1:${kamailio.port}`)
      await phone.event('CALL_ESTABLISHED')
      const session = await engine.of(line.number)
      await hearsFor(session, 1.5)
      phone.hangUp()
      await bothHeard(t, { phone, session })
      t.match((await line.ended()).row, { direction: 'inbound', outcome: 'completed', fromNumber: baresipUser })
    })

    await t.test(`a call that came through it ${name} is hung up by the service`, async (t) => {
      const phone = await startBaresip(t, { tone: tones.phone, codec })
      const line = await addLine()
      phone.dial(`sip:${line.number}@127.0.0.1:${kamailio.port}`)
      const { callId } = await line.status('in_progress')
      await rest('POST', `/phone-calls/${String(callId)}/hangup`)
      await phone.event('CALL_CLOSED')
      t.match((await line.ended()).row, { direction: 'inbound', outcome: 'completed' })
    })
  }
})

test('kamailio as a registrar of telephones', { skip, timeout: 100_000 }, async (t) => {
  const engine = createHearingEngine({ tone: tones.service })
  const { addLine, rest } = await openPhoneStage(t, engine)
  const kinds = [
    { name: 'over UDP', transport: 'udp', hidesTopology: false },
    { name: 'over TCP, hiding the topology', transport: 'tcp', hidesTopology: true },
  ] as const

  for (const { name, transport, hidesTopology } of kinds) {
    const kamailio = await startKamailio(t, { service: null, password, asksCallers: true, hidesTopology })
    const gateways = [{ host: '127.0.0.1', port: kamailio.port, transport }]
    const trunk = { gateways, username: 'service', password }
    const ringing = async (t: Test) => {
      const registrar = { port: kamailio.port, password }
      const phone = await startBaresip(t, { tone: tones.phone, codec, registrar })
      await kamailio.registered(baresipUser)
      const line = await addLine({ trunk })
      const callId = await line.dial(baresipUser)
      await line.status('in_progress')
      return { phone, line, callId }
    }

    await t.test(`the service proves its password ${name}, calls one of them, and hangs up`, async (t) => {
      const { phone, line, callId } = await ringing(t)
      const session = await engine.of(line.number)
      await hearsFor(session, 1.5)
      await rest('POST', `/phone-calls/${callId}/hangup`)
      await bothHeard(t, { phone, session })
      t.match((await line.ended()).row, { direction: 'outbound', outcome: 'completed', providerStatus: /^200 / })
    })

    await t.test(`one of them hangs up on the service ${name}`, async (t) => {
      const { phone, line } = await ringing(t)
      await phone.event('CALL_ESTABLISHED')
      phone.hangUp()
      t.match((await line.ended()).row, { direction: 'outbound', outcome: 'completed' })
    })

    await t.test(`a number that nobody registered is told ${name}`, async (t) => {
      const line = await addLine({ trunk })
      await line.dial('+4915199999999')
      const { row } = await line.ended()
      t.match(row, { outcome: 'failed', failedReason: 'carrier_call_failed', providerStatus: /^404 / })
    })
  }
})

test('kamailio as the registrar of a trunk', { skip, timeout: 100_000 }, async (t) => {
  const engine = createHearingEngine({ tone: tones.service })
  const kamailio = await startKamailio(t, { service: null, password })
  // The number of the first line, and an extension of the second.
  const usernames = ['+12025550001', '1002']
  const gateways = [{ host: '127.0.0.1', port: kamailio.port }]
  const trunks = usernames.map((username) => ({ trunk: { gateways, register: true, username, password } }))
  const { lines, rest } = await openPhoneStage(t, engine, { lines: trunks })

  for (const [index, line] of lines.entries())
    await t.test(`the service registers as ${usernames[index]} with its password, and is called there`, async (t) => {
      const username = usernames[index] ?? ''
      await kamailio.registered(username)
      const state = await until(async () => {
        const told = await rest('GET', `/trunks/${line.trunkId}/state`)
        return told['registration'] === 'registered' && told
      })
      t.match(state, { registrationDetails: '200 OK' })
      const phone = await startBaresip(t, { tone: tones.phone, codec })
      phone.dial(`sip:${username}@127.0.0.1:${kamailio.port}`)
      await phone.event('CALL_ESTABLISHED')
      const session = await engine.of(line.number)
      await hearsFor(session, 1.5)
      phone.hangUp()
      await bothHeard(t, { phone, session })
      t.match((await line.ended()).row, { direction: 'inbound', outcome: 'completed', trunkId: line.trunkId })
    })
})

type Asserting = Pick<Test, 'equal'>

async function bothHeard(
  t: Asserting,
  { phone, session }: { readonly phone: Baresip; readonly session: HearingSession },
): Promise<void> {
  await phone.event('CALL_CLOSED')
  const heard = { samples: session.heard(), rateHz: engineRateHz }
  t.equal(dominantHertz(heard), tones.phone, 'the engine hears the phone')
  t.equal(dominantHertz(await phone.heard()), tones.service, 'the phone hears the engine')
}

const hearsFor = (session: HearingSession, seconds: number) =>
  until(() => session.heard().length >= seconds * engineRateHz)
