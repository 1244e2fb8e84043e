/** A softphone and the service hear each other: baresip against the whole service, with each codec, in clear and encrypted, either side calling. */
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'tap'
import { dominantHertz, hasBaresipModule, startBaresip, withoutBaresip, type Baresip } from '../peers/baresip.ts'
import { createFolder } from '../scenes/folder.ts'
import { createHearingEngine, engineRateHz, type HearingSession } from '../fake/hearing-engine.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'
import { fakeTls } from '../scenes/tls.ts'
import { until } from '../scenes/in-time.ts'

const skip = withoutBaresip()
const tones = { phone: 440, service: 880 } as const
const ways = [
  { name: 'PCMU', codec: 'pcmu', isSecure: false },
  { name: 'PCMA', codec: 'pcma', isSecure: false },
  { name: 'G722', codec: 'g722', isSecure: false },
  { name: 'PCMU over TLS with SRTP', codec: 'pcmu', isSecure: true },
] as const

test('a softphone and the service hear each other', { skip, timeout: 100_000 }, async (t) => {
  const folder = await createFolder(t)
  const [SIP_TLS_CERT, SIP_TLS_KEY] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')]
  await writeFile(SIP_TLS_CERT, fakeTls.cert)
  await writeFile(SIP_TLS_KEY, fakeTls.key)
  const engine = createHearingEngine({ tone: tones.service })
  const settings = { SIP_TLS_CERT, SIP_TLS_KEY, SIP_TLS_CA: SIP_TLS_CERT }
  const { addLine, port, tlsPort, rest } = await openPhoneStage(t, engine, { settings })
  const usable = ways.filter(({ codec }) => codec !== 'g722' || hasBaresipModule('g722'))

  await t.test('the phone calls', async (t) => {
    const call = async ({ name, codec, isSecure }: (typeof ways)[number]) => {
      const phone = await startBaresip(t, { tone: tones.phone, codec, isSecure })
      const line = await addLine()
      phone.dial(`sip:${line.number}@127.0.0.1:${isSecure ? `${tlsPort};transport=tls` : port}`)
      await phone.event('CALL_ESTABLISHED')
      const session = await engine.of(line.number)
      await hearsFor(session, 1.5)
      phone.press('5')
      await until(() => session.digits.length > 0)
      t.same(session.digits, ['5'], `${name}: the key is heard`)
      phone.hangUp()
      await bothHeard(t, name, { phone, session })
      const { row, told } = await line.ended()
      t.match(row, { direction: 'inbound', outcome: 'completed', fromNumber: '+4915112345678' })
      t.match(told, { status: 'completed', recordingAvailable: true })
    }
    await Promise.all(usable.map(call))
  })

  await t.test('the service calls', async (t) => {
    const call = async ({ name, codec, isSecure }: (typeof ways)[number]) => {
      const phone = await startBaresip(t, { tone: tones.phone, codec, isSecure })
      const gateway = isSecure
        ? ({ host: '127.0.0.1', port: phone.port + 1, transport: 'tls' } as const)
        : { host: '127.0.0.1', port: phone.port }
      const line = await addLine({ trunk: { gateways: [gateway] } })
      const callId = await line.dial('+4915112345678')
      await line.status('in_progress')
      const session = await engine.of(line.number)
      await hearsFor(session, 1.5)
      await rest('POST', `/phone-calls/${callId}/hangup`)
      await bothHeard(t, name, { phone, session })
      const { row, told } = await line.ended()
      t.match(row, { direction: 'outbound', outcome: 'completed', providerStatus: /^200 / })
      t.match(told, { status: 'completed', recordingAvailable: true })
    }
    await Promise.all(usable.map(call))
  })

  await t.test('a phone proves the password of its trunk', async (t) => {
    const login = { username: 'ada', password: 'secret' }
    const phone = await startBaresip(t, { tone: tones.phone, codec: 'pcmu', login })
    const line = await addLine({ trunk: { ...login, authenticateInbound: true } })
    phone.dial(`sip:${line.number}@127.0.0.1:${port}`)
    await phone.event('CALL_ESTABLISHED')
    phone.hangUp()
    t.match((await line.ended()).row, { outcome: 'completed' })
  })
})

type Ends = { readonly phone: Baresip; readonly session: HearingSession }
type Asserting = { equal(found: unknown, wanted: unknown, message: string): unknown }

async function bothHeard(t: Asserting, name: string, { phone, session }: Ends): Promise<void> {
  await phone.event('CALL_CLOSED')
  t.equal(
    dominantHertz({ samples: session.heard(), rateHz: engineRateHz }),
    tones.phone,
    `${name}: the engine hears the phone`,
  )
  t.equal(dominantHertz(await phone.heard()), tones.service, `${name}: the phone hears the engine`)
}

const hearsFor = (session: HearingSession, seconds: number) =>
  until(() => session.heard().length >= seconds * engineRateHz)
