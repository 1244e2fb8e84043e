/** Owns `npm run load -- record` and `anonymise`: how session files come to be, and lose what tells whose call it was. */
import { readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { orCannot, requireWritable } from '../../cannot.ts'
import { calledOf, spoken } from '../called-target.ts'
import { readLoadOptions, WrongOptions } from '../load-options.ts'
import { maxCaptureBytes, WrongCapture } from '../pcap/read-pcap.ts'
import { sessionsOfPcap } from '../pcap/sessions-of-pcap.ts'
import { anonymise } from './anonymise-session.ts'
import { readSession } from './read-session.ts'
import { recordCall } from './record-call.ts'

export type CommandDeps = { readonly print: (text: string) => void; readonly stopping: AbortSignal }

/** Throws WrongOptions. */
export async function record(given: readonly string[], { print, stopping }: CommandDeps): Promise<void> {
  const [out, withoutOut] = taken(given, '--out')
  const [pcap, rest] = taken(withoutOut, '--pcap')
  if (out === null) throw new WrongOptions('record: --out names the session file that is written')
  await requireWritable(`--out ${out}`, out)
  if (pcap !== null) return fromCapture(pcap, out, print)
  const [way = '', ...options] = rest
  if (way !== 'web' && way !== 'sip') throw new WrongOptions('record: web or sip, or --pcap and a capture')
  const read = readLoadOptions(way, options)
  await using closing = new AsyncDisposableStack()
  const called = await calledOf(read, closing)
  const phrases = await spoken(read.say)
  const { holdMs, allowedHosts } = read
  const text = await orCannot('the call that was to be recorded did not come about', () =>
    recordCall({ way, called, phrases, stopping, holdMs, allowedHosts }),
  )
  await writeFile(out, text)
  print(`${out}: ${text.split('\n').length - 1} lines`)
}

async function fromCapture(file: string, out: string, print: (text: string) => void): Promise<void> {
  const bytes = await orCannot(`--pcap ${file}`, async () => {
    const { size } = await stat(file)
    if (size > maxCaptureBytes) throw new WrongOptions(`${file}: ${size} bytes, at most ${maxCaptureBytes}`)
    return readFile(file)
  })
  const found = capturedIn(file, bytes)
  if (found.length === 0)
    throw new WrongOptions(`${file}: no INVITE over UDP or TCP is in it; SIP over TLS cannot be read`)
  for (const { callId, unusable } of found) if (unusable !== null) print(`${callId} is left out: ${unusable}`)
  const calls = found.filter(({ unusable }) => unusable === null)
  if (calls.length === 0) throw new WrongOptions(`${file}: none of its calls can be made again`)
  for (const [index, { text, packets }] of calls.entries()) {
    const target = calls.length === 1 ? out : numbered(out, index + 1)
    await writeFile(target, text)
    print(`${target}: ${packets.caller} packets of the caller, ${packets.service} of the service`)
  }
}

function capturedIn(file: string, bytes: Buffer) {
  try {
    return sessionsOfPcap(bytes)
  } catch (error) {
    if (error instanceof WrongCapture) throw new WrongOptions(`${file}: ${error.message}`)
    throw error
  }
}

function numbered(file: string, number: number): string {
  const { dir, name, ext } = path.parse(file)
  return path.join(dir, `${name}-${number}${ext}`)
}

/** Throws WrongOptions. */
export async function anonymiseFile(given: readonly string[], { print }: CommandDeps): Promise<void> {
  const [out, [file, ...rest]] = taken(given, '--out')
  if (file === undefined || out === null || rest.length > 0)
    throw new WrongOptions('anonymise <session file> --out <another file>')
  if (path.resolve(file) === path.resolve(out)) throw new WrongOptions('anonymise: --out must be another file')
  await requireWritable(`--out ${out}`, out)
  const text = anonymise(await readSession(file))
  await writeFile(out, text)
  print(`${out}: ${text.split('\n').length - 1} lines`)
}

function taken(given: readonly string[], name: string): [string | null, string[]] {
  const at = given.indexOf(name)
  const value = given[at + 1]
  if (at === -1) return [null, [...given]]
  if (value === undefined) throw new WrongOptions(`${name} needs a file behind it`)
  return [value, given.filter((_word, index) => index !== at && index !== at + 1)]
}
