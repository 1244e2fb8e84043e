/**
 * Owns requests and their answers over one way to a SIP host, for callers made of software: a request is repeated on UDP until it is answered, a request
 * of the other side is answered with 200 and told to whom its call is. RFC 3261 §17.1, §17.2.
 */
import { headerOf, headersOf } from '../../sip/server/message/header-fields.ts'
import type { SipMessage, SipRequest, SipResponse } from '../../sip/server/message/message.ts'
import { parseMessage } from '../../sip/server/message/parse-message.ts'
import { openSipSocket, type SipSocket, type SipTarget } from './sip-socket.ts'

export type SipExchange = {
  readonly target: SipTarget
  local: SipSocket['local']
  send(bytes: Uint8Array): void
  /** The final answer to the request of this call and CSeq. Rejects when none comes. */
  ask(callId: string, cseq: string, bytes: Uint8Array): Promise<SipResponse>
  /** Each message of a call, its repetitions left out; the one listener. The result takes it away. */
  hear(callId: string, listener: (message: SipMessage) => void): () => void
  /** What a repeated final answer to this request gets: its ACK was lost. */
  acknowledged(callId: string, cseq: string, bytes: Uint8Array): void
  /** Idempotent. */
  close(): Promise<void>
}

/** T1, which is not doubled here: on one machine nothing is lost unless the service is behind. */
const repeatEvery = 500
const giveUpAfter = 20_000
/** Requests of the other side that are remembered, so that a repeated one is told once. */
const maxSeen = 20_000

export async function openSipExchange(target: SipTarget): Promise<SipExchange> {
  const waiting = new Map<string, (response: SipResponse) => void>()
  const listeners = new Map<string, (message: SipMessage) => void>()
  const acks = new Map<string, Uint8Array>()
  const seen = new Set<string>()
  const socket = await openSipSocket(target, (bytes) => {
    const parsed = parseMessage(bytes)
    if (parsed.kind === 'message') received(parsed.message)
  })

  function received(message: SipMessage): void {
    const callId = headerOf(message, 'Call-ID') ?? ''
    const key = keyOf(callId, headerOf(message, 'CSeq') ?? '')
    if (message.kind === 'request') return requested(message, callId, key)
    listeners.get(callId)?.(message)
    if (message.status < 200) return
    const wait = waiting.get(key)
    if (wait) return wait(message)
    const ack = acks.get(key)
    if (ack) socket.send(ack)
  }

  function requested(request: SipRequest, callId: string, key: string): void {
    if (request.method === 'ACK') return
    socket.send(Buffer.from(`${okTo(request).join('\r\n')}\r\nContent-Length: 0\r\n\r\n`))
    if (seen.has(key)) return
    if (seen.size >= maxSeen) seen.clear()
    seen.add(key)
    listeners.get(callId)?.(request)
  }

  return {
    target,
    local: socket.local,
    send: socket.send,
    ask(callId, cseq, bytes) {
      const key = keyOf(callId, cseq)
      return new Promise((resolve, reject) => {
        const repeat = target.protocol === 'udp' ? setInterval(() => socket.send(bytes), repeatEvery) : undefined
        const settle = (): void => {
          clearInterval(repeat)
          clearTimeout(late)
          waiting.delete(key)
        }
        const late = setTimeout(() => {
          settle()
          reject(new Error(`no answer of ${target.host}:${target.port} within ${giveUpAfter / 1000} s`))
        }, giveUpAfter)
        waiting.set(key, (response) => {
          settle()
          resolve(response)
        })
        socket.send(bytes)
      })
    },
    hear(callId, listener) {
      listeners.set(callId, listener)
      return () => {
        listeners.delete(callId)
        for (const key of acks.keys()) if (key.startsWith(`${callId} `)) acks.delete(key)
      }
    },
    acknowledged(callId, cseq, bytes) {
      acks.set(keyOf(callId, cseq), bytes)
      socket.send(bytes)
    },
    close: socket.close,
  }
}

const keyOf = (callId: string, cseq: string): string => `${callId} ${cseq.replace(/\s+/g, ' ')}`

function okTo(request: SipRequest): string[] {
  const copied = ['From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${headerOf(request, name)}`)
  return ['SIP/2.0 200 OK', ...headersOf(request, 'Via').map((line) => `Via: ${line}`), ...copied]
}
