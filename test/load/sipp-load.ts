/**
 * Owns calls at a steady rate, placed by sipp: set up, held for a moment, torn down. What it says of them is what counts: failures, messages that had to be
 * sent again, and the time from INVITE to 200.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'

export type SippRound = {
  readonly rate: number
  readonly calls: number
  readonly failed: number
  readonly retransmissions: number
  /** From INVITE to 200, ms, of each call. */
  readonly answeredMs: readonly number[]
  /** What it took to place the calls and to see them end, ms; more than was wanted says that sipp was held up. */
  readonly ms: number
}

export type SippLoad = { readonly port: number; readonly called: string; readonly calling: string }

/** What a call lasts: long enough that the service is in the midst of it. */
export const holdMs = 300
/** Beyond the calls' own time, ms. */
const patience = 15_000

const program = 'sipp'

export const hasSipp = (): boolean => spawnSync(program, ['-v']).error === undefined

export async function runSipp(rate: number, seconds: number, load: SippLoad): Promise<SippRound> {
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-sipp-'))
  try {
    await writeFile(path.join(folder, 'call.xml'), scenarioOf(load))
    const ms = await runIn(folder, { rate, seconds, port: load.port })
    return { rate, ms, ...(await readResults(folder)) }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

type Run = { readonly rate: number; readonly seconds: number; readonly port: number }

async function runIn(folder: string, { rate, seconds, port }: Run): Promise<number> {
  const [own, control, media] = [await freePort(), await freePort(), await freePort()]
  const calls = rate * seconds
  const options = [
    `127.0.0.1:${port} -sf call.xml -i 127.0.0.1 -bind_local -nostdin`,
    `-p ${own} -cp ${control} -mp ${media} -r ${rate} -m ${calls} -l ${Math.max(1000, calls)}`,
    '-trace_stat -stf stat.csv -fd 1 -trace_rtt -rtt_freq 1 -timer_resol 1',
    `-timeout ${seconds + (holdMs + patience) / 1000}s`,
  ]
  const beganAt = performance.now()
  const child = spawn(program, options.join(' ').split(' '), { cwd: folder, stdio: 'ignore' })
  await once(child, 'exit')
  return performance.now() - beganAt
}

/** Of the last line of its statistics, which is about all. */
async function readResults(folder: string): Promise<Omit<SippRound, 'rate' | 'ms'>> {
  const [head = '', ...lines] = (await readFile(path.join(folder, 'stat.csv'), 'utf8')).trim().split('\n')
  const names = head.split(';')
  const last = lines.at(-1)?.split(';') ?? []
  const valueOf = (name: string): number => Number(last[names.indexOf(name)] ?? 0)
  const calls = valueOf('TotalCallCreated')
  return {
    calls,
    // Those that had no end when the time was over have failed as well.
    failed: calls - valueOf('SuccessfulCall(C)'),
    retransmissions: valueOf('Retransmissions(C)'),
    answeredMs: await readTimes(folder),
  }
}

async function readTimes(folder: string): Promise<number[]> {
  const file = (await readdir(folder)).find((name) => name.endsWith('_rtt.csv'))
  if (file === undefined) return []
  const lines = (await readFile(path.join(folder, file), 'utf8')).trim().split('\n').slice(1)
  return lines.map((line) => Number(line.split(';')[1])).filter(Number.isFinite)
}

async function freePort(): Promise<number> {
  const socket = await bindUdp('127.0.0.1', 0)
  const { port } = socket.address()
  await closeUdp(socket)
  return port
}

const scenarioOf = ({ called, calling }: SippLoad): string => `<?xml version="1.0" encoding="UTF-8"?>
<scenario name="call">
${sending(`INVITE sip:${called}@[remote_ip]:[remote_port] SIP/2.0`, 'INVITE', { called, calling, toTag: '', cseq: 1 }, true)}
<recv response="100" optional="true"/>
<recv response="180" optional="true"/>
<recv response="183" optional="true"/>
<recv response="200" rtd="1" rrs="true"/>
${sending(`ACK [next_url] SIP/2.0`, 'ACK', { called, calling, toTag: '[peer_tag_param]', cseq: 1 })}
<pause milliseconds="${holdMs}"/>
${sending(`BYE [next_url] SIP/2.0`, 'BYE', { called, calling, toTag: '[peer_tag_param]', cseq: 2 })}
<recv response="200"/>
</scenario>
`

type Words = { readonly called: string; readonly calling: string; readonly toTag: string; readonly cseq: number }

/** ACK has no transaction and is not repeated by time. */
function sending(start: string, method: string, words: Words, hasOffer = false): string {
  const { called, calling, toTag, cseq } = words
  const repeated = method === 'ACK' ? '' : ' retrans="500"'
  const timed = method === 'INVITE' ? ' start_rtd="1"' : ''
  const lines = [
    start,
    'Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]',
    'Max-Forwards: 70',
    `From: <sip:${calling}@[local_ip]:[local_port]>;tag=[pid]-[call_number]`,
    `To: <sip:${called}@[remote_ip]:[remote_port]>${toTag}`,
    'Call-ID: [call_id]',
    `CSeq: ${cseq} ${method}`,
    `Contact: <sip:${calling}@[local_ip]:[local_port]>`,
    ...(hasOffer ? ['Content-Type: application/sdp'] : []),
    'Content-Length: [len]',
    '',
    ...(hasOffer ? offer : []),
  ]
  return `<send${repeated}${timed}><![CDATA[\n\n${lines.join('\n')}\n]]></send>`
}

/** Nobody listens on that port: what comes is lost, and costs sipp nothing. */
const offer = [
  'v=0',
  'o=- 1 1 IN IP4 [local_ip]',
  's=-',
  'c=IN IP4 [media_ip]',
  't=0 0',
  'm=audio [media_port] RTP/AVP 0',
  'a=rtpmap:0 PCMU/8000',
]
