/**
 * Owns rtpengine as the other end of the calls of a bench, where it is installed: the usual relay between two telephones, here between a telephone of the
 * bench and a bare echo. It does no more for a call than to pass packets on, both ways, so that its cost is that of two echoes in C.
 */
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { bindUdp, closeUdp } from '../../media/rtp/udp-socket.ts'
import { forkProcess } from './forked-process.ts'
import type { OtherEnd } from './phone-row.ts'

const program = 'rtpengine'
const ports = { least: 40_000, most: 46_000 } as const
/** Of the control protocol. */
const answerMs = 500
const attempts = 20
/** One core, as one media thread of the service has. */
const threads = 1

export const hasRtpengine = (): boolean => spawnSync(program, ['--version']).status === 0

export async function openRtpengine(closing: AsyncDisposableStack): Promise<OtherEnd> {
  const echo = await forkProcess<unknown>('process-echoing-rtp.ts', [])
  closing.defer(() => echo.close())
  const control = await openControl(closing)
  let echoing: number[] = []
  return {
    prepare: async (count) => void ({ ports: echoing } = await echo.ask<{ ports: number[] }>(`open ${count}`)),
    async connect(phone) {
      const port = echoing.pop()
      if (port === undefined) throw new Error('the echo has no port left')
      const call = { 'call-id': randomBytes(8).toString('hex'), 'from-tag': 'caller' }
      await control.ask({ command: 'offer', ...call, sdp: sdpOf(phone.port) })
      const answered = await control.ask({ command: 'answer', ...call, 'to-tag': 'called', sdp: sdpOf(port) })
      const relayed = /^m=audio (\d+) /m.exec(answered)?.[1]
      if (relayed === undefined) throw new Error(`rtpengine gave no port: ${answered}`)
      phone.begin({ address: '127.0.0.1', port: Number(relayed) })
      return async () => void (await control.ask({ command: 'delete', ...call }))
    },
    read: () => Promise.resolve({ cpuMs: cpuMsOf(control.pid) }),
    settled: () => Promise.resolve(),
  }
}

type Control = { readonly pid: number; ask(question: Readonly<Record<string, string>>): Promise<string> }

/** Its control protocol: a dictionary in bencode behind a word that the answer repeats. */
async function openControl(closing: AsyncDisposableStack): Promise<Control> {
  const [socket, port] = [await bindUdp('127.0.0.1', 0), await freePort()]
  closing.defer(() => closeUdp(socket))
  const child = spawn(
    program,
    [
      '--config-file=none',
      '--foreground',
      '--table=-1',
      '--interface=127.0.0.1',
      `--listen-ng=127.0.0.1:${port}`,
      `--port-min=${ports.least}`,
      `--port-max=${ports.most}`,
      `--num-threads=${threads}`,
      '--log-stderr',
      '--log-level=3',
    ],
    { stdio: 'ignore' },
  )
  const gone = once(child, 'exit')
  closing.defer(async () => {
    child.kill()
    await gone
  })
  const waiting = new Map<string, (answer: string) => void>()
  socket.on('message', (datagram) => {
    const [, word = '', answer = ''] = /^(\S+) (.*)$/s.exec(datagram.toString('latin1')) ?? []
    waiting.get(word)?.(answer)
  })
  const ask = async (question: Readonly<Record<string, string>>): Promise<string> => {
    const word = randomBytes(6).toString('hex')
    const answer = Promise.withResolvers<string>()
    waiting.set(word, answer.resolve)
    try {
      for (let attempt = 0; attempt < attempts; attempt++) {
        socket.send(`${word} ${bencode(question)}`, port, '127.0.0.1')
        const told = await Promise.race([answer.promise, pause(answerMs, null)])
        if (told === null) continue
        if (!/6:result(?:2:ok|4:pong)/.test(told)) throw new Error(`rtpengine refuses ${question['command']}: ${told}`)
        return told
      }
      throw new Error(`rtpengine does not answer ${question['command']}`)
    } finally {
      waiting.delete(word)
    }
  }
  await ask({ command: 'ping' })
  return { pid: child.pid ?? 0, ask }
}

async function freePort(): Promise<number> {
  const socket = await bindUdp('127.0.0.1', 0)
  const { port } = socket.address()
  await closeUdp(socket)
  return port
}

const bencode = (fields: Readonly<Record<string, string>>): string =>
  `d${Object.entries(fields)
    .map((pair) => pair.map((text) => `${text.length}:${text}`).join(''))
    .join('')}e`

const sdpOf = (port: number): string =>
  [
    'v=0',
    'o=- 1 1 IN IP4 127.0.0.1',
    's=-',
    'c=IN IP4 127.0.0.1',
    't=0 0',
    `m=audio ${port} RTP/AVP 0`,
    'a=rtpmap:0 PCMU/8000',
    'a=sendrecv',
    '',
  ].join('\r\n')

/** Of all its threads, which live as long as it does. */
function cpuMsOf(pid: number): number {
  const spent = readdirSync(`/proc/${pid}/task`).map((id) =>
    Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'latin1').split(' ')[0]),
  )
  return spent.reduce((sum, ns) => sum + ns, 0) / 1e6
}
