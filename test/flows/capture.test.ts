/** The capture of a call, from its sockets to the file that REST gives away: whose packets, what of them, and a call that is made again from it. */
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test, type Test } from 'tap'
import { readRtp } from '../../media/rtp/rtp-wire.ts'
import { newId } from '../../app/core.ts'
import { createApiKey } from '../../store/api-keys.ts'
import { readLoadOptions } from '../../tools/load/load-options.ts'
import { sessionsOfPcap } from '../../tools/load/pcap/sessions-of-pcap.ts'
import { performLoad } from '../../tools/load/perform-load.ts'
import { createHearingEngine } from '../fake/hearing-engine.ts'
import { createFolder } from '../scenes/folder.ts'
import { until } from '../scenes/in-time.ts'
import { openLossyPhone } from '../scenes/lossy-line.ts'
import { openPhoneStage, type PhoneStage } from '../scenes/phone-stage.ts'
import { placeOnStage, silentOpus } from '../scenes/stage-web-call.ts'
import { runCommand } from '../../tools/admin/run-command.ts'

type Packet = { readonly source: string; readonly original: number; readonly udp: Buffer }

/** By hand: IPv4 and UDP behind each head of 16 bytes. */
function packetsIn(pcap: Buffer): Packet[] {
  const packets: Packet[] = []
  for (let at = 24; at + 16 <= pcap.length;) {
    const [length, original] = [pcap.readUInt32LE(at + 8), pcap.readUInt32LE(at + 12)]
    const packet = pcap.subarray(at + 16, at + 16 + length)
    const source = `${packet.subarray(12, 16).join('.')}:${packet.readUInt16BE(20)}`
    packets.push({ source, original, udp: packet.subarray(28) })
    at += 16 + length
  }
  return packets
}

const isRtp = ({ udp }: Packet): boolean => udp[0] === 0x80 && udp.length >= 12
const isCut = ({ udp, original }: Packet): boolean => original > udp.length + 28

async function setUp(t: Test) {
  const engine = createHearingEngine({ tone: 440, seconds: 20 })
  const stage = await openPhoneStage(t, engine, { settings: { LOAD_GATE: 'off' } })
  const { accountId, service } = stage
  const { key } = await createApiKey(service.sql, { accountId, name: 'capture', newId, now: Date.now() })
  const ask = (callId: string, method = 'GET', body?: object) =>
    fetch(new URL(`/v1/accounts/${accountId}/phone-calls/${callId}/capture`, service.url), {
      method,
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
  const take = async (callId: string): Promise<Buffer> => Buffer.from(await (await ask(callId)).arrayBuffer())
  const rtpUntil = (callId: string, isThere: (rtp: Packet[]) => boolean) =>
    until(async () => {
      const answer = await ask(callId)
      const rtp = answer.ok ? packetsIn(Buffer.from(await answer.arrayBuffer())).filter(isRtp) : []
      return isThere(rtp) && rtp
    })
  return { stage, engine, key, ask, take, rtpUntil }
}

async function admin({ service }: PhoneStage, ...words: readonly string[]): Promise<void> {
  const database = { sql: service.sql, print: () => undefined, openBox: () => Promise.reject(new Error('no secret')) }
  await runCommand(words, { print: () => undefined, onDatabase: (use) => use(database) })
}

const permitSound = (stage: PhoneStage): Promise<void> =>
  admin(stage, 'account', 'limits', stage.accountId, '--capture-sound', 'on')

test(
  'what is captured of a call is what its packets were, as far as it may be kept',
  { timeout: 180_000 },
  async (t) => {
    const { stage, key, ask, take, rtpUntil } = await setUp(t)
    const { log, rest, service } = stage
    const isFrom = (place: string) => (packet: Packet) => packet.source === place

    await t.test('of a telephone: headers, then sound, and none of it while the recording is paused', async (t) => {
      const line = await stage.addLine()
      const phone = await openLossyPhone(t, log, { to: null, from: null, reports: true })
      const speaking = await phone.call(`sip:${line.number}@127.0.0.1:${stage.port}`)
      const callId = String((await line.status('in_progress'))['callId'])
      t.equal((await ask(callId)).status, 404, 'nobody has asked for any')
      const refused = await ask(callId, 'POST', { rtp: 'sound' })
      t.equal(refused.status, 403)
      t.match(await refused.json(), { details: /capture-sound/ })
      t.equal((await ask(callId, 'POST', { rtp: 'all' })).status, 400)

      const begun = await ask(callId, 'POST', { rtp: 'headers', minutes: 1 })
      const told = await begun.text()
      t.match(JSON.parse(told), { callId, rtp: 'headers', until: /Z$/ })
      const headers = await rtpUntil(
        callId,
        (rtp) => new Set(rtp.map(({ source }) => source)).size === 2 && rtp.length > 10,
      )
      t.ok(headers.every(isCut), 'no sound')
      t.same(
        headers.map(({ udp }) => udp.length),
        headers.map(() => 12),
      )
      await permitSound(stage)
      t.equal((await ask(callId, 'POST', { rtp: 'sound' })).status, 200)
      const whole = await rtpUntil(callId, (rtp) => rtp.filter((packet) => !isCut(packet)).length > 10)
      t.ok(whole.filter((packet) => !isCut(packet)).every(({ udp }) => readRtp(udp)?.payload.length === 160))

      await rest('POST', `/phone-calls/${callId}/recording/pause`)
      const paused = await rtpUntil(callId, (rtp) => rtp.slice(-4).every(isCut))
      await rest('POST', `/phone-calls/${callId}/recording/resume`)
      await rtpUntil(callId, (rtp) => rtp.slice(paused.length).some((packet) => !isCut(packet)))
      await speaking.hangUp()
      await line.ended()
      t.equal((await ask(callId, 'POST', { rtp: 'headers' })).status, 409, 'it is over')
      const pcap = await until(async () => {
        const bytes = await take(callId)
        return bytes.includes('BYE sip:') && bytes
      })
      const [session, ...others] = sessionsOfPcap(pcap)
      t.same(others, [])
      t.ok((session?.packets.caller ?? 0) > 20 && (session?.packets.service ?? 0) > 20, 'sound belongs to its call')
      t.match(pcap.toString('latin1', 24, 600), /INVITE sip:/, 'in the order of time')

      const file = path.join(await createFolder(t), 'again.jsonl')
      await writeFile(file, `${session?.text}{"type":"expect","outcome":"completed"}\n`)
      const url = ['--url', service.url, '--key', key, '--i-may-load', '127.0.0.1']
      const options = readLoadOptions('replay', [file, ...url, '--sip', `sip:${line.number}@127.0.0.1:${stage.port}`])
      const { result } = await performLoad({
        options,
        stopping: new AbortController().signal,
        progress: () => undefined,
      })
      t.same(result.unmet, [])
      t.ok(result.counts.packetsSent > 20, 'and the call is made again from it')
    })

    await t.test('of a browser: without its encryption, and with its signaling', async (t) => {
      const { line, web, send } = await placeOnStage(t, stage)
      await line.status('in_progress')
      t.equal((await ask(web.callId, 'POST', { rtp: 'sound' })).status, 200)
      // The talk has begun, and with it the recording.
      await rtpUntil(web.callId, (rtp) => rtp.some((packet) => !isCut(packet)))
      send(10)
      const spoken = (rtp: Packet[]) => rtp.filter(({ udp }) => Buffer.from(silentOpus).equals(udp.subarray(12)))
      await rtpUntil(web.callId, (rtp) => spoken(rtp).length === 10)
      await web.hangUp()
      await line.ended()
      const pcap = await until(async () => {
        const bytes = await take(web.callId)
        return bytes.includes('"type":"offer"') && bytes
      })
      const rtp = packetsIn(pcap).filter(isRtp)
      const place = spoken(rtp)[0]?.source ?? ''
      t.match(place, /^127\.0\.0\.1:\d+$/)
      t.ok(
        rtp.some((packet) => !isFrom(place)(packet) && packet.udp.length > 12),
        'what was said to it is there',
      )
    })

    await t.test(
      'of calls to come: from the answer on, as many as the operator asked for, and no others',
      async (t) => {
        const line = await stage.addLine()
        await admin(stage, 'capture', 'on', stage.accountId, line.workerId, '--hours', '1', '--calls', '1')
        const talk = async (isThere: (callId: string) => Promise<unknown>) => {
          const phone = await openLossyPhone(t, log, { to: null, from: null, reports: true })
          const speaking = await phone.call(`sip:${line.number}@127.0.0.1:${stage.port}`)
          const callId = String((await line.status('in_progress'))['callId'])
          await isThere(callId)
          await speaking.hangUp()
          await line.ended()
          return callId
        }
        const callId = await talk((id) => rtpUntil(id, (rtp) => rtp.length > 10))
        const rtp = packetsIn(await take(callId)).filter(isRtp)
        t.ok(rtp.length > 10 && rtp.every(isCut), 'headers alone, though sound is permitted')
        const next = await talk(async () => undefined)
        await until(async () => (await take(next)).includes('BYE sip:'))
        t.same(packetsIn(await take(next)).filter(isRtp), [], 'one was asked for')
      },
    )
  },
)
