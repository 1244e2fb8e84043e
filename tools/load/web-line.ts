/** Owns a call of the load by web: a session from the API, the signaling socket, WebRTC. Sound goes to allowed hosts only, whatever the answer offers. */
import { createWeriftCaller, type WebCaller } from '../../gateway/werift/caller.ts'
import type { ClientMessage, ServerMessage } from '../../model/signaling.ts'
import { WebCallSession } from '../../model/web-call.ts'
import { placeWebCall } from '../callers/web-caller.ts'
import { askService } from './ask-api.ts'
import type { AllowedHosts } from './allowed-hosts.ts'
import type { LoadLine } from './load-line.ts'
import type { WebTarget } from './load-job.ts'

export type WebLineDeps = {
  readonly web: WebTarget
  readonly allowed: AllowedHosts
  readonly codecs?: readonly ('opus' | 'pcmu')[]
  /** What is offered in place of the caller's own offer. */
  readonly offerOf?: (own: string) => string
  readonly told?: (by: 'caller' | 'service', message: ClientMessage | ServerMessage) => void
}

export type WebLine = LoadLine & { signal(message: ClientMessage): void }

/** Resolves when it is connected; what was begun is ended when it rejects. */
export async function openWebLine(deps: WebLineDeps): Promise<WebLine> {
  const { web, allowed, codecs = ['opus'], offerOf = (own: string) => own, told = () => undefined } = deps
  const asked = await askService(web, { method: 'POST', path: 'web-calls', body: { workerId: web.workerId } })
  const session = WebCallSession.parse(asked)
  allowed.check(new URL(session.signalingUrl).hostname, 'the signaling of the service')
  const over = Promise.withResolvers<string>()
  const refused = Promise.withResolvers<never>()
  refused.promise.catch(() => undefined)
  const call = await placeWebCall({
    ...session,
    createCaller() {
      const caller = withinAllowed(createWeriftCaller({ codecs, ...bindFor(web, allowed) }), allowed)
      return {
        ...caller,
        async offer() {
          const sdp = offerOf(await caller.offer())
          told('caller', { type: 'offer', sdp })
          return sdp
        },
      }
    },
    onMessage(message) {
      if (message.type === 'bye') over.resolve(`bye: ${message.reason}`)
      if (message.type === 'error') refused.reject(new Error(`the service answered: ${message.error.details}`))
      told('service', message)
    },
  })
  try {
    const audio = await Promise.race([call.caller.connected, refused.promise])
    void call.caller.ended.then((how) => over.resolve(how))
    const codec = audio.codec === 'opus' ? 'opus' : 'pcmu'
    return {
      callId: session.callId,
      audio: { payloadType: audio.payloadType, clockRateHz: audio.clockRateHz, codec },
      onPacket: call.caller.onPacket,
      send: call.caller.send,
      ended: over.promise,
      signal(message) {
        told('caller', message)
        call.sendMessage(message)
      },
      hangUp: call.hangUp,
    }
  } catch (error) {
    await call.hangUp()
    throw error
  }
}

/** Loopback reaches loopback only. */
const bindFor = ({ url }: WebTarget, allowed: AllowedHosts): { readonly bindAddress?: string } =>
  allowed.allows(new URL(url).hostname) && isThisMachine(new URL(url).hostname) ? {} : { bindAddress: '0.0.0.0' }

const isThisMachine = (host: string): boolean => /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(host)

function withinAllowed(caller: WebCaller, allowed: AllowedHosts): WebCaller {
  const isAllowed = (candidate: string): boolean => {
    const [, address] = /candidate:\S+ \d+ \S+ \d+ (\S+) \d+ /i.exec(candidate) ?? []
    return address === undefined || allowed.allows(address)
  }
  return {
    ...caller,
    accept(answer) {
      const lines = answer.split(/\r?\n/)
      const kept = lines.filter((line) => !/^a=candidate:/i.test(line) || isAllowed(line))
      return caller.accept(kept.join('\r\n'))
    },
    addCandidate: (candidate) =>
      candidate && !isAllowed(candidate.candidate) ? Promise.resolve() : caller.addCandidate(candidate),
  }
}
