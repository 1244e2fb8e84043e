/**
 * A call of sipp, captured on its way and made again against the service; calls by TLS; and the service's own counts, which agree with those of the load.
 */
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'tap'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'
import { freePorts } from '../../tools/cluster/free-ports.ts'
import { readLoadOptions } from '../../tools/load/load-options.ts'
import { scrape } from '../../tools/load/loaded-cost.ts'
import { openOwnService } from '../../tools/load/own-parley.ts'
import { performLoad, type Performed } from '../../tools/load/perform-load.ts'
import { anonymise } from '../../tools/load/session/anonymise-session.ts'
import { readSession } from '../../tools/load/session/read-session.ts'
import { sessionsOfPcap } from '../../tools/load/pcap/sessions-of-pcap.ts'
import { ipv4, pcap, udp, type Captured } from '../scenes/captured-packets.ts'
import { createFolder } from '../scenes/folder.ts'
import { until } from '../scenes/in-time.ts'
import { fakeTls } from '../scenes/tls.ts'
import { startSipp, withoutSipp } from '../peers/sipp.ts'

const host = '127.0.0.1'

/** Answers go where the Via says. */
const throughPort = (bytes: Buffer, port: number): Buffer =>
  Buffer.from(bytes.toString('latin1').replace(/^(Via: SIP\/2\.0\/UDP 127\.0\.0\.1:)\d+/m, `$1${port}`), 'latin1')

/** Between sipp and the service, with a memory of what passes. */
async function openCapturingRelay(servicePort: number) {
  const packets: Captured[] = []
  const [near, far] = [await bindUdp(host, 0), await bindUdp(host, 0)]
  const nearPort = near.address().port
  let caller = 0
  const capture = (from: number, to: number, bytes: Buffer): void =>
    void packets.push({ at: Date.now(), bytes: ipv4(host, host, 17, udp(from, to, Buffer.from(bytes))) })
  near.on('message', (bytes, from) => {
    caller = from.port
    capture(caller, nearPort, bytes)
    far.send(throughPort(bytes, far.address().port), servicePort, host)
  })
  far.on('message', (answer) => {
    const bytes = throughPort(answer, caller)
    capture(nearPort, caller, bytes)
    near.send(bytes, caller, host)
  })
  return {
    port: nearPort,
    packets,
    close: async () => void (await Promise.all([closeUdp(near), closeUdp(far)])),
  }
}

/** Sound of the caller, as it would stand between the messages of its call. */
function withSound(packets: readonly Captured[]): Captured[] {
  const text = packets.map(({ bytes }) => bytes.toString('latin1'))
  const port = (from: RegExp): number => Number(/m=audio (\d+)/.exec(text.find((one) => from.test(one)) ?? '')?.[1])
  const answered = packets[text.findIndex((one) => /SIP\/2\.0 200[^]*m=audio/.test(one))]?.at ?? 0
  const [from, to] = [port(/INVITE sip/), port(/SIP\/2\.0 200[^]*m=audio/)]
  const sound = Array.from({ length: 20 }, (_, index): Captured => {
    const rtp = Buffer.alloc(172, 0xff)
    rtp.writeUInt16BE(0x8000, 0)
    rtp.writeUInt16BE(index, 2)
    rtp.writeUInt32BE(index * 160, 4)
    return { at: answered + index * 20, bytes: ipv4(host, host, 17, udp(from, to, rtp)) }
  })
  return [...packets, ...sound].toSorted((first, second) => first.at - second.at)
}

const perform = async (word: string, words: readonly string[]): Promise<Performed> => {
  const options = readLoadOptions(word, words)
  return performLoad({ options, stopping: new AbortController().signal, progress: () => undefined })
}

test(
  'a call of sipp is made again from its capture, anonymised, and is what its file expects',
  { skip: withoutSipp(), timeout: 180_000 },
  async (t) => {
    const folder = await createFolder(t)
    const sipPort = await freePorts(3)
    const [metricsPort, tlsPort] = [sipPort + 1, sipPort + 2]
    const [cert, key] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')]
    await Promise.all([writeFile(cert, fakeTls.cert), writeFile(key, fakeTls.key)])
    const service = await openOwnService({
      SIP_PORT: String(sipPort),
      // On a machine that has other work as well each of its calls is to be had.
      LOAD_GATE: 'off',
      METRICS_PORT: String(metricsPort),
      SIP_TLS_PORT: String(tlsPort),
      SIP_TLS_CERT: cert,
      SIP_TLS_KEY: key,
    })
    t.teardown(() => service.close())
    const metrics = `http://${host}:${metricsPort}/metrics`
    const ended = async (): Promise<number> => {
      const samples = await scrape(metrics)
      return [...samples].reduce(
        (sum, [name, value]) => (name.startsWith('parley_call_ended_total') ? sum + value : sum),
        0,
      )
    }
    const relay = await openCapturingRelay(service.sipPort)
    t.teardown(() => relay.close())
    const sipp = await startSipp(t, 'caller-hangs-up', { to: relay.port, number: service.called, pause: 1_000 })
    await sipp.done
    const [call, ...others] = sessionsOfPcap(pcap(101, withSound(relay.packets)))
    t.same(others, [])
    t.equal(call?.packets.caller, 20)
    const recorded = path.join(folder, 'sipp.jsonl')
    await writeFile(recorded, call?.text ?? '')
    const file = path.join(folder, 'anonymous.jsonl')
    const expected = [{ answerWithin: 20_000 }, { outcome: 'completed' }]
    const lines = expected.map((one) => `${JSON.stringify({ type: 'expect', ...one })}\n`)
    await writeFile(file, anonymise(await readSession(recorded)) + lines.join(''))

    await until(async () => (await ended()) === 1)
    const common = ['--url', service.url, '--key', service.key, '--i-may-load', host]
    const sip = `sip:${service.called}@${host}`
    const replayed = await perform('replay', [
      file,
      ...common,
      '--sip',
      `${sip}:${service.sipPort}`,
      '--calls',
      '2',
      '--metrics',
      metrics,
    ])
    t.same(replayed.result.unmet, [])
    t.equal(replayed.result.counts.completed, 2, JSON.stringify(replayed.result.errors))
    t.equal(replayed.result.counts.packetsSent, 40, 'with its sound')
    t.ok((replayed.result.cpuSeconds ?? 0) > 0, 'the service tells what it costs')

    const secure = await perform('sip', [
      '--sip',
      `${sip}:${tlsPort};transport=tls`,
      '--tls-ca',
      cert,
      '--calls',
      '1',
      '--hold',
      '1',
    ])
    t.equal(secure.result.counts.completed, 1, JSON.stringify(secure.result.errors))

    const own = 1 + replayed.result.counts.completed + secure.result.counts.completed
    await until(async () => (await ended()) >= own)
    t.equal(await ended(), own, 'the service has counted as many calls as the load')

    await writeFile(file, `${anonymise(await readSession(recorded))}{"type":"expect","outcome":"failed"}\n`)
    const broken = await perform('replay', [file, ...common, '--sip', `${sip}:${service.sipPort}`])
    t.match(broken.result.unmet, [/outcome failed: it was completed/], 'and what is not as expected is told')
  },
)
