/** How well sound got through, as REST tells it after real calls over SIP and WebRTC on loopback, and what the service tells of itself meanwhile. */
import { test, type Test } from 'tap'
import { counters, histograms, spans } from '../../model/telemetry.ts'
import { createHearingEngine, engineRateHz, type HearingSession } from '../fake/hearing-engine.ts'
import { createRecordedTelemetry } from '../fake/recorded-telemetry.ts'
import { until } from '../scenes/in-time.ts'
import { openLossyPhone, type Loss } from '../scenes/lossy-line.ts'
import { openPhoneStage, type Ended } from '../scenes/phone-stage.ts'
import { placeOnStage } from '../scenes/stage-web-call.ts'

type Way = { readonly loss: number; readonly jitterMs: number | null } | null
type Quality = {
  readonly codec: string
  readonly mos: number
  readonly received: Way
  readonly sent: Way
  readonly roundTripMs: number | null
  readonly concealedMs: number
}

const lossless: Loss = { to: null, from: null, reports: true }
const near = (t: Test, value: number | undefined, wanted: number) =>
  t.ok(Math.abs((value ?? 9) - wanted) < 0.03, `${value} is about ${wanted}`)

/** The caller says something, and is answered for a second. */
function talk(session: HearingSession): void {
  session.emit({ type: 'user_speech_started', at: 0 })
  session.emit({ type: 'user_speech_stopped', at: 20 })
  session.emit({ type: 'user_text', text: 'Hello', isFinal: true, confidence: 1, from: 0, to: 20 })
  session.emit({ type: 'agent_text', itemId: 'reply', text: 'Hello.' })
  session.emit({ type: 'audio', itemId: 'reply', payload: new Uint8Array(2 * engineRateHz) })
  session.emit({ type: 'item_done', itemId: 'reply' })
}

test('after a call its quality is what the wire was like', { timeout: 120_000 }, async (t) => {
  const engine = createHearingEngine({ tone: null })
  const telemetry = createRecordedTelemetry()
  const stage = await openPhoneStage(t, engine, { telemetry, settings: { LOAD_GATE: 'off' } })
  const { log, rest } = stage
  const read = (callId: unknown) => rest('GET', `/phone-calls/${String(callId)}`)

  const pressKey = async ({ emit }: HearingSession) => {
    emit({ type: 'tool_call', id: 'press', name: 'call__send_dtmf', arguments: { digits: '1' } })
    await until(() => telemetry.spans.some(({ name, result }) => name === 'tool.run' && result !== null))
  }
  /** The caller begins while the agent still has something to say. */
  const speakOver = async ({ emit }: HearingSession) => {
    emit({ type: 'agent_text', itemId: 'more', text: 'There is more.' })
    emit({ type: 'audio', itemId: 'more', payload: new Uint8Array(2 * engineRateHz) })
    emit({ type: 'user_speech_started', at: 40 })
    await until(() => telemetry.values('turn.barge_in').length > 0)
  }

  async function arrive(loss: Loss) {
    const line = await stage.addLine()
    const phone = await openLossyPhone(t, log, loss)
    const speaking = await phone.call(`sip:${line.number}@127.0.0.1:${stage.port}`)
    const running = await read((await line.status('in_progress'))['callId'])
    await speaking.reported
    await speaking.hangUp()
    return { ...(await line.ended()), running }
  }
  async function dial() {
    const phone = await openLossyPhone(t, log, lossless)
    const line = await stage.addLine({ trunk: { gateways: [{ host: '127.0.0.1', port: phone.port }] } })
    await line.dial('+12025550199')
    const speaking = await phone.called()
    talk(await engine.of(line.number))
    await speaking.reported
    await speaking.hangUp()
    return line.ended()
  }
  async function browse() {
    const { line, web, send } = await placeOnStage(t, stage)
    send(20, (sequenceNumber) => sequenceNumber % 10 === 7)
    const session = await engine.of(line.number)
    talk(session)
    await until(() => web.caller.stats().packetsReceived > 20)
    await pressKey(session)
    await speakOver(session)
    await web.hangUp()
    return line.ended()
  }
  async function stayAway() {
    const { workerId } = await stage.addLine()
    const { callId } = await rest('POST', '/web-calls', { workerId })
    await rest('POST', `/phone-calls/${String(callId)}/cancel`)
    return read(callId)
  }
  const [lossy, clean, outbound, web, never] = await Promise.all([
    arrive({ to: 10, from: 20, reports: true }),
    arrive({ ...lossless, reports: false }),
    dial(),
    browse(),
    stayAway(),
  ])
  await stage.service.close()
  const qualityOf = ({ row }: Ended) => row['quality'] as Quality

  await t.test('packets that got lost both ways, and a round trip', async (t) => {
    const quality = qualityOf(lossy)
    near(t, quality.received?.loss, 0.1)
    near(t, quality.sent?.loss, 0.05)
    t.ok(quality.roundTripMs !== null && quality.roundTripMs < 10_000, 'and of milliseconds')
    t.ok(quality.concealedMs > 0)
    t.ok(quality.mos < 3.9, `${quality.mos} is not good`)
  })

  await t.test('a clean line to a telephone that sends no reports', async (t) => {
    t.match(qualityOf(clean), { codec: 'pcma', received: { loss: 0 }, sent: null, roundTripMs: null })
    t.ok(qualityOf(clean).mos > 4, `${qualityOf(clean).mos} is good`)
  })

  await t.test('a telephone that was called, and a browser', async (t) => {
    t.match(outbound.row, { direction: 'outbound', quality: { received: { loss: 0 }, sent: { loss: 0 } } })
    t.equal(qualityOf(web).codec, 'opus')
    near(t, qualityOf(web).received?.loss, 0.1)
  })

  await t.test('nothing while a call runs, nothing of one that never began, nothing in call.ended', async (t) => {
    for (const row of [lossy.running, clean.running, never]) t.notOk('quality' in row)
    for (const { told } of [lossy, clean, outbound, web]) t.notOk('quality' in told)
  })

  await t.test('one line of the log for each leg', async (t) => {
    const lines = log.lines.filter(({ message }) => message === 'a leg ended')
    t.equal(lines.length, 4)
    for (const { row } of [lossy, clean, outbound, web])
      t.match(
        lines.filter(({ fields }) => fields['callId'] === row['id']),
        [{ level: 'info', fields: { reason: 'hung_up', quality: row['quality'] } }],
      )
  })

  await t.test('the service as it is put together tells everything of itself', async (t) => {
    const told = new Set([...telemetry.observed, ...telemetry.counted, ...telemetry.spans].map(({ name }) => name))
    const declared = [counters, histograms, spans].flatMap((names) => Object.keys(names))
    // Refusals, failures, strangers and loss: of calls that go well there are none.
    const onlyInTrouble = 'bus.dropped call.refused hook.failures leg.stranger_packets load.refused ticker.skipped'
    // It is told to the metrics by the exporter of traces; nobody exports here.
    const onlyWhereTraced = 'trace.spans'
    const untold = new Set(`${onlyInTrouble} ${onlyWhereTraced}`.split(' '))
    for (const name of declared.filter((one) => !untold.has(one))) t.ok(told.has(name), name)
    t.equal(telemetry.values('leg.concealed').length, 4, 'each leg once')
    t.ok(telemetry.spans.every(({ result }) => result === 'ok'))
  })
})
