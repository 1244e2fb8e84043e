/**
 * docs/supervision.md on the whole service: a person in a browser watches a call, listens to both of its sides, takes it over and is heard by the caller,
 * gives it back, whispers, and leaves without a word while the call is theirs.
 */
import { networkInterfaces } from 'node:os'
import { setInterval } from 'node:timers'
import { test, type Test } from 'tap'
import { replay, type LoggedFact } from '../../actors/call/machine/replay.ts'
import { systemClock } from '../../app/clock.ts'
import { newId } from '../../app/core.ts'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { lawOfEncoding } from '../../media/codecs/g711.ts'
import { bytesOf } from '../../model/frame.ts'
import { WebCallSession } from '../../model/web-call.ts'
import { listCallEvents } from '../../store/call-steps.ts'
import { addMember } from '../../store/memberships.ts'
import { createPasswords } from '../../store/passwords.ts'
import { createUser } from '../../store/users.ts'
import { toId } from '../../model/ids.ts'
import { placeWebCall } from '../../tools/callers/web-caller.ts'
import { createScriptedEngine, type ScriptedEngine } from '../fake/scripted-engine.ts'
import { seriousFindings } from '../peers/axe.ts'
import { arrives, sees } from '../peers/browser-page.ts'
import { browsers } from '../peers/browsers.ts'
import { hasChromium, openChromium } from '../peers/chromium.ts'
import { openDemoService } from '../scenes/open-demo.ts'
import { inTime, until } from '../scenes/in-time.ts'
import { spy } from '../scenes/page-call.ts'
import { cheap, password } from '../scenes/people.ts'

const skip = hasChromium() ? false : 'no Chromium'
const law = lawOfEncoding('pcmu')
/** Hz. */
const [callersTone, agentsTone] = [500, 1_200]

const toneOf = (hz: number, rateHz: number, ms: number): Int16Array =>
  Int16Array.from({ length: (rateHz * ms) / 1000 }, (_, at) => 8_000 * Math.sin((2 * Math.PI * hz * at) / rateHz))

async function openService(t: Test, engine: ScriptedEngine) {
  const { service, demo } = await openDemoService(t, engine)
  const { accountId } = demo
  const passwordHash = await createPasswords(cheap).hash(password)
  const now = systemClock.now()
  const userId = await createUser(service.sql, { email: 'olive@example.com', name: 'Olive', passwordHash, newId, now })
  await addMember(service.sql, { accountId, userId, role: 'operator', now })
  return { service, accountId, userId }
}

/** A caller whose tone never ends. What comes down is measured as it comes. */
async function placeCall(t: Test, url: string) {
  const answer = await fetch(`${url}/demo/session`, { method: 'POST', headers: { origin: url } })
  const session = WebCallSession.parse(await answer.json())
  const talking = Promise.withResolvers<void>()
  const call = await placeWebCall({
    signalingUrl: session.signalingUrl,
    token: session.token,
    origin: url,
    createCaller: () => createWeriftCaller({ codecs: ['pcmu'] }),
    onMessage: (message) => message.type === 'status' && message.status === 'in_progress' && talking.resolve(),
  })
  t.teardown(() => call.hangUp())
  let loud = 0
  const samples = new Int16Array(160)
  call.caller.onPacket(({ payload }) => {
    if (payload.length !== 160) return
    law.decode(payload, samples)
    if (samples.some((sample) => Math.abs(sample) > 2_000)) loud++
  })
  await inTime('the call', talking.promise)
  const tone = new Uint8Array(160)
  law.encode(toneOf(callersTone, 8_000, 20), tone)
  let sequenceNumber = 0
  const send = setInterval(() => {
    sequenceNumber++
    call.caller.send({ payloadType: 0, marker: false, sequenceNumber, timestamp: sequenceNumber * 160, payload: tone })
  }, 20)
  t.teardown(() => clearInterval(send))
  return { call, callId: toId<'call'>(call.callId)!, loud: () => loud }
}

const speak = (engine: ScriptedEngine, itemId: string, ms: number): void => {
  engine.emit({ type: 'agent_text', itemId, text: 'So it is. '.repeat(200) })
  engine.emit({ type: 'audio', itemId, payload: bytesOf(toneOf(agentsTone, 16_000, ms)) })
  engine.emit({ type: 'item_done', itemId })
}

/** How loud the tones are that the page hears; dB. */
const heard = `(async () => {
  const [{ track }] = peers.at(-1).getReceivers()
  globalThis.ears ??= new AudioContext()
  const analyser = ears.createAnalyser()
  analyser.fftSize = 4096
  ears.createMediaStreamSource(new MediaStream([track])).connect(analyser)
  await new Promise((resolve) => setTimeout(resolve, 300))
  const found = new Float32Array(analyser.frequencyBinCount)
  analyser.getFloatFrequencyData(found)
  const around = (hz) => Math.max(...[-1, 0, 1].map((by) => found[Math.round((hz * 4096) / ears.sampleRate) + by]))
  return { caller: around(${callersTone}), agent: around(${agentsTone}) }
})()`
/** As a browser whose person says no. */
const noMicrophone = `navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('', 'NotAllowedError'))`
type Heard = { readonly caller: number; readonly agent: number }
const audible = -60

test(
  'a call is listened to, taken over, given back, whispered into and lost',
  { skip, timeout: 150_000 },
  async (t) => {
    const engine = createScriptedEngine({ attends: true })
    const { service, accountId, userId } = await openService(t, engine)
    const { url } = service
    const { call, callId, loud } = await placeCall(t, url)
    const { context, close } = await openChromium()
    t.teardown(close)
    await context.addInitScript(spy)
    const page = await context.newPage()
    await page.goto(`${url}/sign-in?returnTo=%2Fconsole%2Fcalls%2F${callId}`)
    await page.getByLabel('E-mail address').fill('olive@example.com')
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click()

    await press('Listen')
    await page.getByText('You hear both sides').waitFor()
    speak(engine, 'first', 20_000)
    const both = await until(async () => {
      const now = (await page.evaluate(heard)) as Heard
      return now.caller > audible && now.agent > audible && now
    })
    t.ok(both, JSON.stringify(both))
    t.equal(engine.configs.length, 1, 'the agent notices nothing')

    await page.evaluate(noMicrophone)
    await press('Take over')
    await page.getByText('The microphone is not allowed for this page. Allow it in the browser').waitFor()
    t.equal(await page.getByText('You hear both sides').count(), 1, 'and who was not given one still listens')
    t.notOk(engine.told.includes('close'), 'and the agent has the call')
    await page.evaluate('delete navigator.mediaDevices.getUserMedia')

    await press('Take over')
    await page.getByText('You speak with the caller').waitFor()
    await until(() => engine.told.includes('close'))
    const [frames, before] = [engine.heardFrames(), loud()]
    await until(() => loud() > before + 10, loud)
    t.equal(engine.heardFrames(), frames, 'the agent hears nothing of it')
    await until(() => engine.attendedFrames() > 10)
    const heardWords = { text: 'I want to cancel.', isFinal: true, confidence: 0.9, from: 0, to: 200 } as const
    engine.tellAttended({ type: 'user_text', ...heardWords })
    await page.getByText(heardWords.text).first().waitFor()
    const ownWords = { ...heardWords, text: 'Of course, I will do that for you.' }
    engine.tellAttended({ type: 'user_text', ...ownWords }, 'supervisor')
    await page.getByText(ownWords.text).first().waitFor()
    t.equal(await page.locator('.turn .who').last().textContent(), 'Supervisor')
    const alone = await until(async () => {
      const now = (await page.evaluate(heard)) as Heard
      return now.caller > audible && now
    })
    t.ok(alone.agent < audible, `the supervisor hears the caller: ${JSON.stringify(alone)}`)

    const other = await context.newPage()
    await other.goto(page.url())
    await other.getByRole('button', { name: 'Listen', exact: true }).click()
    await other.getByText('speaks with the caller').waitFor()
    t.same(await seriousFindings(other), [], 'everybody can use it')
    t.ok(await other.getByRole('button', { name: 'Take over', exact: true }).isDisabled())
    await other.getByText('One person at a time speaks').waitFor()
    const ask = (method: string, path: string, body?: object) => other.evaluate<string>(asking(method, path, body))
    const address = `/console/accounts/${accountId}/phone-calls/${callId}/supervision`
    const [first, second] = (JSON.parse(await ask('GET', address)) as Answered).body.supervisors ?? []
    t.match([first, second], [{ name: 'Olive', speaks: true }, { speaks: false }])
    t.match(await ask('POST', `${address}/${second?.id}/take-over`), /"status":409.*Somebody else speaks/)
    t.match(await ask('POST', `${address}/${second?.id}/give-back`), /"status":409.*not yours/)
    t.match(await ask('POST', address, { sdp: '' }), /"status":400.*"path":"sdp"/)
    t.match(await ask('POST', `/console/accounts/${newId()}/phone-calls/${callId}/supervision`), /"status":404/)
    t.match(await ask('POST', `${address.replace(callId, newId())}`, { sdp: 'v=0' }), /"status":404/)
    await service.sql`update memberships set role = 'viewer'`
    t.match(await ask('POST', `${address}/whisper`, { text: 'No.' }), /"status":403.*yours in this account is viewer/)
    await service.sql`update memberships set role = 'operator'`
    await service.sql`update accounts set config = config - 'supervisionEnabled'`
    t.match(await ask('POST', `${address}/whisper`, { text: 'No.' }), /"status":403.*does not allow/)
    await service.sql`update accounts set config = config || '{"supervisionEnabled": true}'`
    const lane = other.getByRole('group', { name: 'Taken over' })
    await lane.getByRole('button', { name: /speaks in the agent/ }).waitFor()
    await other.close()
    const happened = async (type: string): Promise<number> =>
      (await listCallEvents(service.sql, callId)).filter(({ event, ignored }) => !ignored && typeOf(event) === type)
        .length
    await until(async () => (await happened('supervisor_left')) === 1)

    await press('Give back')
    await until(() => engine.configs.length === 2)
    t.match(engine.configs[1], {
      whispers: [/spoken with the caller in your place. What they said is in this conversation/],
      history: [{ role: 'agent' }, { role: 'user', text: heardWords.text }, { role: 'agent', text: ownWords.text }],
      owesReply: true,
    })
    t.equal(engine.told.filter((what) => what === 'attend: close').length, 2, 'the agent hears the caller itself again')
    await page.getByLabel('Whisper to the agent').fill('Offer ten percent off.')
    await press('Whisper')
    await page.getByText('The agent has been told.').waitFor()
    await until(() => engine.told.includes('whisper:Offer ten percent off.'))

    await press('Take over')
    await page.getByText('You speak with the caller').waitFor()
    await page.reload()
    await until(() => engine.configs.length === 3)
    t.match(engine.configs[2], { whispers: [String, 'Offer ten percent off.', String] })
    await page.getByText('Not listening', { exact: true }).waitFor()
    await page.getByText(heardWords.text).first().waitFor()
    await page.getByText('speaks with the caller').waitFor({ state: 'detached' })
    await page.close()

    const [, firefox] = browsers()
    const withoutFirefox = firefox.skip || withoutOtherAddress()
    await t.test('in Firefox, too', { skip: withoutFirefox }, async (inner) => {
      const there = await firefox.open()
      inner.teardown(() => there.close())
      await there.preload(spy)
      await there.goto(`${url}/sign-in?returnTo=%2Fconsole%2Fcalls%2F${callId}`)
      await there.evaluate(signingIn)
      await arrives(there, `/console/calls/${callId}`)
      const presses = async (name: string): Promise<void> => {
        const button = `[...document.querySelectorAll('button')].find((one) => one.textContent === '${name}')`
        await sees(there, `${button} && !${button}.disabled`)
        await there.evaluate(`${button}.click()`)
      }
      const says = (text: string) => sees(there, `document.body.innerText.includes('${text}')`)
      await presses('Listen')
      await says('You hear both sides')
      await sees(there, `[...(await peers.at(-1).getStats()).values()].some((one) => one.totalAudioEnergy > 0.001)`)
      const silent = loud()
      await presses('Take over')
      await says('You speak with the caller')
      await until(() => loud() > silent + 10, loud)
      inner.ok(loud() > silent + 10, 'the caller hears who speaks there')
      await presses('Give back')
      await says('You hear both sides')
      await until(() => engine.configs.length === 4)
      await presses('Stop listening')
      await until(async () => (await happened('supervisor_left')) === 3)
    })
    const inFirefox = <Step>(...done: readonly Step[]): readonly Step[] => (withoutFirefox ? [] : done)

    await call.hangUp()
    await until(async () => (await happened('leg_closed')) === 1)
    const log = (await listCallEvents(service.sql, callId)) as readonly LoggedFact[]
    t.same(replay(log).differences, [])
    const steps = [
      'supervisor_joined',
      'voice_taken',
      'supervisor_joined',
      'supervisor_left',
      'voice_returned',
      'whispered',
      'voice_taken',
      'supervisor_left',
      ...inFirefox('supervisor_joined', 'voice_taken', 'voice_returned', 'supervisor_left'),
    ]
    t.same(
      log.flatMap(({ event, ignored }) => (ignored ? [] : [typeOf(event)])).filter((type) => steps.includes(type)),
      steps,
    )
    const audited = await service.sql<{ action: string; userId: string }[]>`
    select action, user_id from audit_entries
    where account_id = ${accountId} and action like 'supervision.%' and action <> 'supervision.leave' and result = 'success'
    order by id`
    const noted = ['listen', 'take_over', 'listen', 'give_back', 'whisper', 'take_over']
    noted.push(...inFirefox('listen', 'take_over', 'give_back'))
    t.same(
      audited.map(({ action }) => action),
      noted.map((step) => `supervision.${step}`),
    )
    t.ok(audited.every((entry) => entry.userId === userId))
  },
)

const signingIn = `(() => {
  document.querySelector('input[type=email]').value = 'olive@example.com'
  document.querySelector('input[type=password]').value = ${JSON.stringify(password)}
  document.querySelector('input[type=password]').form.requestSubmit()
})()`

const withoutOtherAddress = (): string | false =>
  Object.values(networkInterfaces()).some((own) => own?.some(({ internal, family }) => !internal && family === 'IPv4'))
    ? false
    : 'Firefox sends nothing to loopback, and there is no other address'

type Answered = { readonly body: { readonly supervisors?: readonly { id: string; name: string; speaks: boolean }[] } }

/** What the page asks of its service, and the answer as JSON. */
const asking = (method: string, path: string, body?: object): string => `(async () => {
  const { csrf } = await (await fetch('/console/session')).json()
  const answer = await fetch(${JSON.stringify(path)}, {
    method: ${JSON.stringify(method)},
    headers: { 'x-csrf-token': csrf, 'content-type': 'application/json' },
    ...(${body !== undefined} && { body: ${JSON.stringify(JSON.stringify(body ?? null))} }),
  })
  return JSON.stringify({ status: answer.status, body: await answer.json().catch(() => null) })
})()`

const typeOf = (event: unknown): string => (event as { readonly type: string }).type
