/** Owns reading session files, strictly: what is wrong is told with file, line and field, and nothing is placed before the whole file is good. */
import { open } from 'node:fs/promises'
import type { z } from 'zod'
import { issuesOf } from '../../../model/issues.ts'
import { parseMessage } from '../../../sip/server/message/parse-message.ts'
import { Cannot } from '../../cannot.ts'
import {
  expectations,
  lineSchemas,
  maxLineBytes,
  maxSessionBytes,
  maxSessionLines,
  SessionHead,
  sessionVersion,
  type Expected,
  type ExpectLine,
  type RtpLine,
  type Session,
  type SignalLine,
  type SipLine,
} from './session-format.ts'

export class WrongSession extends Cannot {
  override readonly name = 'WrongSession'
}

/** Rejects with WrongSession. */
export async function readSession(file: string): Promise<Session> {
  const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
    throw new WrongSession(`${file}: it cannot be read (${error.code ?? error.message})`)
  })
  try {
    const found = await handle.stat()
    if (!found.isFile()) throw new WrongSession(`${file}: it is no file`)
    const { size } = found
    if (size > maxSessionBytes) throw new WrongSession(`${file}: ${size} bytes, at most ${maxSessionBytes}`)
    return parseSession(file, await handle.readFile('utf8'))
  } finally {
    await handle.close()
  }
}

/** Throws WrongSession. */
export function parseSession(file: string, text: string): Session {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  if (lines.length > maxSessionLines)
    throw new WrongSession(`${file}: ${lines.length} lines, at most ${maxSessionLines}`)
  const [first = '', ...rest] = lines
  const head = readHead(file, first)
  const parts = createParts(file, head)
  for (const [index, line] of rest.entries()) parts.add(line, index + 2)
  return parts.session()
}

function readHead(file: string, line: string): SessionHead {
  const value = jsonOf(line, `${file}:1`)
  const version = value['parleySession']
  if (version === undefined)
    throw new WrongSession(`${file}:1: parleySession: it must say which version of a session file it is`)
  if (version !== sessionVersion)
    throw new WrongSession(
      `${file}:1: parleySession: version ${JSON.stringify(version)} is none that is known; this one reads ${sessionVersion}`,
    )
  return checked(SessionHead, value, `${file}:1`)
}

function createParts(file: string, head: SessionHead) {
  const sip: SipLine[] = []
  const signals: SignalLine[] = []
  const rtp: RtpLine[] = []
  const sounds = new Map<number, Uint8Array>()
  const expected: ExpectLine[] = []

  function readLine(value: Readonly<Record<string, unknown>>, place: string): void {
    const type = value['type']
    switch (type) {
      case 'sip':
        if (head.kind !== 'sip') throw new WrongSession(`${place}: type: sip in a session of ${head.kind}`)
        return void sip.push(readable(checked(lineSchemas.sip, value, place), place))
      case 'signal':
        if (head.kind !== 'web') throw new WrongSession(`${place}: type: signal in a session of ${head.kind}`)
        return void signals.push(checked(lineSchemas.signal, value, place))
      case 'sound': {
        const { ref, payload } = checked(lineSchemas.sound, value, place)
        if (sounds.has(ref)) throw new WrongSession(`${place}: ref: there is a sound ${ref} already`)
        return void sounds.set(ref, Buffer.from(payload, 'base64'))
      }
      case 'rtp': {
        const packet = checked(lineSchemas.rtp, value, place)
        if (packet.ref !== undefined && !sounds.has(packet.ref))
          throw new WrongSession(`${place}: ref: there is no sound ${packet.ref} before it`)
        if (packet.by === 'caller' && packet.ref === undefined)
          throw new WrongSession(`${place}: ref: a packet of the caller must say what was in it`)
        return void rtp.push(packet)
      }
      case 'expect':
        return void expected.push(readExpect(checked(lineSchemas.expect, value, place), place))
      default:
        throw new WrongSession(`${place}: type: must be one of ${Object.keys(lineSchemas).join(', ')}`)
    }
  }
  return {
    add(line: string, number: number): void {
      const place = `${file}:${number}`
      if (line.trim() === '') throw new WrongSession(`${place}: the line is empty`)
      readLine(jsonOf(line, place), place)
    },
    session(): Session {
      const opening = head.kind === 'sip' ? sip.some(isInvite) : signals.some(isOffer)
      if (!opening)
        throw new WrongSession(
          `${file}: no ${head.kind === 'sip' ? 'INVITE' : 'offer'} of the caller, with which a call would begin`,
        )
      return { file, head, sip, signals, rtp, sounds, expected: joined(expected) }
    },
  }
}

/** What the caller says is said again. */
function readable(line: SipLine, place: string): SipLine {
  if (line.by === 'service' || parseMessage(Buffer.from(line.message)).kind === 'message') return line
  throw new WrongSession(`${place}: message: it is no SIP message that can be read`)
}

const isInvite = ({ by, message }: SipLine): boolean => by === 'caller' && message.startsWith('INVITE ')
const isOffer = ({ by, message }: SignalLine): boolean => by === 'caller' && message.type === 'offer'

function readExpect(line: ExpectLine, place: string): ExpectLine {
  const named = expectations.filter((name) => line[name] !== undefined)
  if (named.length !== 1) throw new WrongSession(`${place}: expect: one of ${expectations.join(', ')} in each line`)
  return line
}

const joined = (lines: readonly ExpectLine[]): Expected => ({
  answerWithin: lines.findLast((line) => line.answerWithin !== undefined)?.answerWithin ?? null,
  audioWithin: lines.findLast((line) => line.audioWithin !== undefined)?.audioWithin ?? null,
  transcriptContains: lines.flatMap(({ transcriptContains }) => transcriptContains ?? []),
  outcome: lines.findLast((line) => line.outcome !== undefined)?.outcome ?? null,
})

function jsonOf(line: string, place: string): Readonly<Record<string, unknown>> {
  if (line.length > maxLineBytes) throw new WrongSession(`${place}: ${line.length} characters, at most ${maxLineBytes}`)
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // As told below.
  }
  throw new WrongSession(`${place}: this is no JSON object`)
}

function checked<Schema extends z.ZodType>(schema: Schema, value: unknown, place: string): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = issuesOf(parsed.error, value)
  throw new WrongSession(`${place}: ${issue ? `${issue.path}: ${issue.message}` : 'it is malformed'}`)
}
