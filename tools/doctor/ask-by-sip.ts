/** Owns one question by SIP: OPTIONS over UDP (RFC 3261 §11), which needs no number and begins no call. Any answer says that SIP comes through. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { randomBytes } from 'node:crypto'
import { reasonOf } from '../../app/told-failure.ts'
import { doubtful, well, type Looked } from './finding.ts'

/** A packet may be lost. */
const attempts = 3
const answersWithin = 1_500
const mend = 'Let SIP_PORT through for UDP where carriers come from; where there are no telephones this says nothing.'

export async function askBySip(host: string, port: number): Promise<Looked> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  try {
    const bound = once(socket, 'listening')
    socket.bind(0)
    await bound
    for (let attempt = 0; attempt < attempts; attempt++) {
      const answer = once(socket, 'message', { signal: AbortSignal.timeout(answersWithin) })
      socket.send(questionTo(host, port, socket.address().port), port, host.replace(/^\[(.*)\]$/, '$1'))
      const came = await answer.catch((error: unknown) => (isTimeout(error) ? null : Promise.reject(error as Error)))
      const [status] = came === null ? [] : String((came as [Buffer])[0]).split('\r\n', 1)
      if (status) return well(`${status.slice(0, 80)}, from ${host}:${port}`)
    }
    return doubtful(`no answer from ${host}:${port}`, mend)
  } catch (error) {
    return doubtful(`${host}:${port}: ${reasonOf(error)}`, mend)
  } finally {
    socket.close()
  }
}

const isTimeout = (error: unknown): boolean => error instanceof Error && error.name === 'AbortError'

function questionTo(host: string, port: number, own: number): string {
  const unique = (): string => randomBytes(8).toString('hex')
  return [
    `OPTIONS sip:${host}:${port} SIP/2.0`,
    `Via: SIP/2.0/UDP doctor.invalid:${own};branch=z9hG4bK${unique()};rport`,
    'Max-Forwards: 1',
    `From: <sip:doctor@doctor.invalid>;tag=${unique()}`,
    `To: <sip:${host}:${port}>`,
    `Call-ID: ${unique()}@doctor.invalid`,
    'CSeq: 1 OPTIONS',
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n')
}
