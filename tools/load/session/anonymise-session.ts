/**
 * Owns a session file without what tells whose call it was: addresses, numbers, names, credentials, what was said. What steers a call stays, so that it can be
 * made again. It proves itself on its result: one original that is still in it, and there is no result.
 */
import type { ClientMessage, ServerMessage } from '../../../model/signaling.ts'
import { Cannot } from '../../cannot.ts'
import { createAliases, type Aliases } from './aliases.ts'
import { anonymousCandidate, anonymousSdp } from './anonymise-sdp.ts'
import { anonymousSip } from './anonymise-sip.ts'
import { createAnonymousSound } from './anonymise-sound.ts'
import type { Session, SignalLine } from './session-format.ts'
import { sessionText, type RecordedLine } from './write-session.ts'

const removed = '(removed)'

/** The text of the new file. Expectations of words go, because words are what was said. */
export function anonymise(session: Session): string {
  // The first time finds what there is: nothing may be replaced by what is the name of something else.
  const found = createAliases()
  anonymousText(session, found)
  const aliases = createAliases(found.originals())
  const text = anonymousText(session, aliases)
  const left = aliases.originals().filter((original) => text.includes(original))
  if (left.length > 0)
    throw new Cannot(`${session.file}: ${left.length} names would still be in the result, so that there is none`)
  return text
}

function anonymousText(session: Session, aliases: Aliases): string {
  const { recordedAt: _when, name: _name, ...head } = session.head
  const sip = session.sip.flatMap((line): RecordedLine[] => {
    const message = anonymousSip(line.message, aliases)
    return message === null ? [] : [{ ...line, message }]
  })
  const signals = session.signals.map((line): RecordedLine => anonymousSignal(line, aliases))
  const lines: RecordedLine[] = [...sip, ...signals, ...anonymousPackets(session), ...expectationsOf(session)]
  return sessionText(head, lines)
}

function anonymousPackets({ head, rtp, sounds }: Session): RecordedLine[] {
  const sound = createAnonymousSound(head)
  try {
    return rtp.map(({ at, by, seq, ts, pt, marker, ref }): RecordedLine => {
      const given = ref === undefined ? undefined : sounds.get(ref)
      const payload = given ? sound.of(given, pt === head.payloadType) : new Uint8Array(0)
      const packet = { sequenceNumber: seq, timestamp: ts, payloadType: pt, marker: marker === true, payload }
      return { type: 'packet', at, by, packet }
    })
  } finally {
    sound.close()
  }
}

function expectationsOf({ expected: { answerWithin, audioWithin, outcome } }: Session): RecordedLine[] {
  return [
    ...(answerWithin === null ? [] : [{ type: 'expect', answerWithin } as const]),
    ...(audioWithin === null ? [] : [{ type: 'expect', audioWithin } as const]),
    ...(outcome === null ? [] : [{ type: 'expect', outcome } as const]),
  ]
}

function anonymousSignal(line: SignalLine, aliases: Aliases): RecordedLine {
  if (line.by === 'caller') return { ...line, message: ofCaller(line.message, aliases) }
  return { ...line, message: ofService(line.message, aliases) }
}

function ofCaller(message: ClientMessage, aliases: Aliases): ClientMessage {
  if (message.type === 'offer') return { ...message, sdp: anonymousSdp(message.sdp, aliases) }
  if (message.type === 'candidate') return { ...message, candidate: candidateOf(message.candidate, aliases) }
  if (message.type === 'text') return { ...message, text: removed }
  return message.type === 'dtmf' ? { ...message, digits: '1'.repeat(message.digits.length) } : message
}

function ofService(message: ServerMessage, aliases: Aliases): ServerMessage {
  const { token } = aliases
  switch (message.type) {
    case 'ready': {
      const { callId, sessionId, resumeToken } = message
      return {
        ...message,
        callId: token('id', callId),
        sessionId: token('id', sessionId),
        resumeToken: token('id', resumeToken),
      }
    }
    case 'answer':
      return { ...message, sdp: anonymousSdp(message.sdp, aliases) }
    case 'candidate':
      return { ...message, candidate: candidateOf(message.candidate, aliases) }
    case 'transcript':
      return { ...message, text: removed }
    case 'error':
      return {
        ...message,
        error: { ...message.error, details: removed, requestId: token('id', message.error.requestId) },
      }
    case 'bye':
    case 'interrupted':
    case 'pong':
    case 'status':
    case 'warning':
      return message
  }
}

type Candidate = Extract<ClientMessage, { type: 'candidate' }>['candidate']

const candidateOf = (candidate: Candidate, { address, token }: Aliases): Candidate =>
  candidate && {
    candidate: anonymousCandidate(candidate.candidate, address),
    ...(candidate.sdpMid != null && { sdpMid: candidate.sdpMid }),
    ...(candidate.sdpMLineIndex != null && { sdpMLineIndex: candidate.sdpMLineIndex }),
    ...(candidate.usernameFragment != null && {
      usernameFragment: token('ufrag', candidate.usernameFragment).slice(0, 8),
    }),
  }
