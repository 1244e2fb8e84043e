/**
 * Sound in threads of its own, as operators set it: a thread that dies or stands still takes its own calls with it and no others, and another is in its
 * place soon, on the ports of the one before.
 */
import process from 'node:process'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { Worker } from 'node:worker_threads'
import { test, type Test } from 'tap'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { until } from '../scenes/in-time.ts'
import { openLossyPhone, type Loss } from '../scenes/lossy-line.ts'
import { openPhoneStage } from '../scenes/phone-stage.ts'
import { makeStandStill } from '../scenes/stuck-thread.ts'
import { createWeriftCaller } from '../../gateway/werift/caller.ts'
import { WebCallSession } from '../../model/web-call.ts'
import { placeWebCall } from '../../tools/callers/web-caller.ts'
import { freePorts } from '../peers/peer-program.ts'

const lossless: Loss = { to: null, from: null, reports: true }

/** Every worker thread that this process starts, in that order. */
function noteThreads(t: Pick<Test, 'teardown'>): readonly Worker[] {
  const threads: Worker[] = []
  const noted = (worker: Worker): void => void threads.push(worker)
  process.on('worker', noted)
  t.teardown(() => process.off('worker', noted))
  return threads
}

test('a media thread that dies ends its own calls only, and is started again', { timeout: 120_000 }, async (t) => {
  const threads = noteThreads(t)
  const engine = createHearingEngine({ tone: 440, seconds: 60 })
  const stage = await openPhoneStage(t, engine, { settings: { MEDIA_THREADS: '2' } })
  const { log, rest, service } = stage
  const media = threads.slice(0, 2)
  const lines = [await stage.addLine(), await stage.addLine()] as const
  const phone = await openLossyPhone(t, log, lossless)
  const call = async (line: (typeof lines)[number]) => {
    const speaking = await phone.call(`sip:${line.number}@127.0.0.1:${stage.port}`)
    const { callId } = await line.status('in_progress')
    return { ...speaking, callId: String(callId) }
  }
  const calls = [await call(lines[0]), await call(lines[1])] as const
  t.equal(service.legs(), 2)

  await media[0]?.terminate()
  // The first call is on either: a thread whose beat is late gets none.
  const endings = lines.map(async (line, index) => ({ index, ...(await line.ended()) }))
  const ended = await Promise.race(endings)
  const other = 1 - ended.index
  t.match(ended.row, { id: calls[ended.index]?.callId, outcome: 'failed', endedBy: 'service' })
  await until(() => service.legs() === 1)
  t.match(
    await rest('GET', `/phone-calls/${calls[other]?.callId}`),
    { status: 'in_progress' },
    'the other call goes on',
  )
  await until(() => log.lines.some(({ message }) => message === 'a media thread was started again'))
  t.ok(
    log.lines.some(
      ({ message, level }) => level === 'error' && message === 'a media thread ended, and its calls with it',
    ),
  )

  const again = await call(lines[ended.index]!)
  t.equal(service.legs(), 2)
  await again.hangUp()
  t.match((await lines[ended.index]!.ended()).row, { outcome: 'completed' })
  await calls[other]?.hangUp()
  t.match((await endings[other])?.row, { outcome: 'completed' })
})

test(
  'a media thread that stands still is ended for it, and the call of a browser on another goes on until its own thread dies',
  { timeout: 120_000 },
  async (t) => {
    const threads = noteThreads(t)
    const engine = createHearingEngine({ tone: 440, seconds: 60 })
    // Of each thread one pair of ports, so that its next call needs those of the call before.
    const ports = await freePorts(4)
    const settings = { MEDIA_THREADS: '2', SIP_MEDIA_PORTS: `${ports}-${ports + 3}` }
    const stage = await openPhoneStage(t, engine, { settings })
    const { log, rest, service } = stage
    const [ofBrowser, ofPhone] = threads
    if (!ofBrowser || !ofPhone) throw new Error('there are no media threads')
    const web = await stage.addLine()
    const lines = [await stage.addLine(), await stage.addLine()] as const
    const session = WebCallSession.parse(await rest('POST', '/web-calls', { workerId: web.workerId }))
    const browser = await placeWebCall({ ...session, createCaller: () => createWeriftCaller(), onMessage: () => {} })
    t.teardown(() => browser.hangUp())
    await browser.caller.connected
    await web.status('in_progress')
    const phone = await openLossyPhone(t, log, lossless)
    const call = (line: (typeof lines)[number]) => phone.call(`sip:${line.number}@127.0.0.1:${stage.port}`)
    await call(lines[0])
    await lines[0].status('in_progress')
    t.equal(service.legs(), 2)

    await makeStandStill(ofPhone)
    const { row } = await lines[0].ended()
    t.match(row, { outcome: 'failed', failedReason: 'internal_error', endedBy: 'service' })
    const why = log.lines.find(({ message }) => message === 'a media thread ended, and its calls with it')
    t.match(why?.fields['error'], { message: 'the thread stood still' })
    const [talking] = await service.sql`select outcome from calls where id = ${browser.callId}`
    t.same([talking, service.legs()], [{ outcome: null }, 1], 'the browser talks on')
    await until(() => log.lines.some(({ message }) => message === 'a media thread was started again'))
    const again = [await call(lines[0]), await call(lines[1])]
    t.equal(service.legs(), 3, 'the ports of the thread that is gone are free')

    await again[0]?.reported
    await ofBrowser.terminate()
    const ended = await web.event('call.ended')
    const told = { status: 'failed', failedReason: 'internal_error', endedBy: 'service' }
    t.match(ended, { callId: browser.callId, ...told })
    await until(() => service.legs() === 1, service.legs)
    for (const { hangUp } of again) await hangUp()
  },
)

test('recordings of media threads are complete when the service has stopped', { timeout: 120_000 }, async (t) => {
  const engine = createHearingEngine({ tone: 440, seconds: 60 })
  const stage = await openPhoneStage(t, engine, { settings: { MEDIA_THREADS: '1' } })
  const line = await stage.addLine()
  const phone = await openLossyPhone(t, stage.log, lossless)
  await phone.call(`sip:${line.number}@127.0.0.1:${stage.port}`)
  const { callId } = await line.status('in_progress')
  const { service } = stage
  const session = await engine.of(line.number)
  await until(() => session.heard().length > 2 * 16_000)
  await service.close()
  const accounts = await readdir(path.join(stage.dataDir, 'recordings'))
  const account = accounts.find((name) => !name.startsWith('.')) ?? ''
  const file = await readFile(path.join(stage.dataDir, 'recordings', account, `${String(callId)}.wav`))
  // What was heard in the first moments may have come before the recording began.
  t.ok(file.length > 3 * 16_000, `${file.length} bytes are there`)
  t.equal(file.readUInt32LE(4), file.length - 8, 'its header tells of all of it')
  t.same(
    stage.log.lines.filter(({ level }) => level === 'error'),
    [],
  )
})
