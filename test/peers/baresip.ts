/**
 * Owns baresip as a softphone without a sound card: a folder with its configuration, calls by its control port, what it heard as a WAV, and
 * the pitch of that. It speaks a pure tone all the time.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { wavHeaderOf } from '../../media/recording/wav.ts'
import { parseWav } from '../scenes/parse-wav.ts'
import { createFolder } from '../scenes/folder.ts'
import { inTime } from '../scenes/in-time.ts'
import { freePorts, hasProgram, startProgram } from './peer-program.ts'
import { fakeTls } from '../scenes/tls.ts'

const program = '/usr/bin/baresip'
const modules = '/usr/lib/baresip/modules'

export const withoutBaresip = (): string | false => (hasProgram(program) ? false : `no ${program}`)
export const hasBaresipModule = (name: string): boolean => existsSync(path.join(modules, `${name}.so`))

export type BaresipOptions = {
  /** Hz. */
  readonly tone: number
  readonly codec: 'pcmu' | 'pcma' | 'g722'
  /** Over TLS, with SRTP or not at all. */
  readonly isSecure?: boolean
  readonly login?: { readonly username: string; readonly password: string }
  /** Where it registers, on loopback. */
  readonly registrar?: { readonly port: number; readonly password: string }
}

/** Who calls, and who is registered. */
export const baresipUser = '+4915112345678'

export type Baresip = {
  /** Of SIP over UDP and TCP; TLS is on the next one. */
  readonly port: number
  dial(uri: string): void
  hangUp(): void
  press(key: string): void
  /** Resolves with the next event of the type that nobody has taken yet: `CALL_ESTABLISHED`, `CALL_CLOSED`. */
  event(type: string): Promise<Record<string, unknown>>
  /** What it heard in its one call; it has ended then. */
  heard(): Promise<{ readonly samples: Int16Array; readonly rateHz: number }>
}

type Teardown = { teardown(close: () => Promise<void>): unknown }

/** It is ready for calls, and answers by itself, when this resolves. */
export async function startBaresip(t: Teardown, options: BaresipOptions): Promise<Baresip> {
  const folder = await createFolder(t)
  const port = await freePorts(3)
  await writeFiles(folder, port, options)
  const child = startProgram(program, ['-f', folder], folder)
  t.teardown(() => child.close())
  await child.listening('tcp', port + 2)
  const control = await openControl(port + 2)
  t.teardown(() => control.close())
  await child.listening('udp', port)
  return {
    port,
    dial: (uri) => control.send('dial', uri),
    hangUp: () => control.send('hangup', ''),
    press: (key) => control.send('sndcode', key),
    event: control.event,
    async heard() {
      control.send('quit', '')
      await child.ended
      const name = (await readdir(folder)).find((file) => file.endsWith('-dec.wav'))
      if (name === undefined) throw new Error(`baresip heard nothing: ${child.output()}`)
      return parseWav(new Uint8Array(await readFile(path.join(folder, name))))
    },
  }
}

async function writeFiles(folder: string, port: number, options: BaresipOptions): Promise<void> {
  const { tone, codec } = options
  const media = 10_000 + 20 * Math.floor(Math.random() * 400)
  const names = ['aubridge', codec === 'g722' ? 'g722' : 'g711', 'srtp', 'aufile', 'sndfile']
  const config = [
    `sip_listen 127.0.0.1:${port}`,
    'net_interface 127.0.0.1',
    'audio_player aubridge,sink',
    `audio_source aufile,${folder}/tone.wav`,
    'audio_alert aubridge,alert',
    'ausrc_srate 8000',
    'auplay_srate 8000',
    `rtp_ports ${media}-${media + 19}`,
    `sip_certificate ${folder}/both.pem`,
    `ctrl_tcp_listen 127.0.0.1:${port + 2}`,
    `snd_path ${folder}`,
    `module_path ${modules}`,
    ...names.map((name) => `module ${name}.so`),
    'module_tmp account.so',
    'module_app menu.so',
    'module_app ctrl_tcp.so',
  ]
  const write = (name: string, content: string | Uint8Array) => writeFile(path.join(folder, name), content)
  await write('config', `${config.join('\n')}\n`)
  await write('accounts', `${accountOf(port, options)}\n`)
  await write('contacts', '')
  await write('both.pem', fakeTls.key + fakeTls.cert)
  await write('tone.wav', toneWav(tone))
}

function accountOf(port: number, { codec, isSecure = false, login, registrar }: BaresipOptions): string {
  const proof = registrar ? { username: baresipUser, password: registrar.password } : login
  const auth = proof ? `;auth_user=${proof.username};auth_pass=${proof.password}` : ''
  const way = isSecure ? ';transport=tls' : ''
  const secure = isSecure ? ';mediaenc=srtp-mand' : ''
  const codecs = codec === 'g722' ? 'g722/16000' : codec
  const place = `<sip:${baresipUser}@127.0.0.1:${registrar?.port ?? port}${way}>;regint=${registrar ? 60 : 0}`
  return `${place};answermode=auto;audio_codecs=${codecs}${secure}${auth}`
}

/** At 8 kHz, 20 s. */
function toneWav(hertz: number): Uint8Array {
  const samples = Int16Array.from({ length: 8_000 * 20 }, (_, index) =>
    Math.round(10_000 * Math.sin((2 * Math.PI * hertz * index) / 8_000)),
  )
  const bytes = new Uint8Array(samples.buffer)
  return Buffer.concat([wavHeaderOf({ rateHz: 8_000, channels: 1 }, bytes.length), bytes])
}

/** JSON in netstrings: `<bytes>:<JSON>,`. */
async function openControl(port: number) {
  const socket: Socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const events: Record<string, unknown>[] = []
  let told = () => undefined as void
  let rest = ''
  socket.on('error', () => undefined) // It ends with baresip.
  socket.on('data', (chunk: Buffer) => {
    rest += chunk.toString('latin1')
    for (let colon = rest.indexOf(':'); colon > 0; colon = rest.indexOf(':')) {
      const end = colon + 1 + Number(rest.slice(0, colon))
      if (rest.length <= end) break
      const message = JSON.parse(rest.slice(colon + 1, end)) as Record<string, unknown>
      rest = rest.slice(end + 1)
      if (message['event'] === true) events.push(message)
    }
    told()
  })
  return {
    send(command: string, params: string) {
      const text = JSON.stringify({ command, params })
      socket.write(`${Buffer.byteLength(text)}:${text},`)
    },
    event(type: string): Promise<Record<string, unknown>> {
      const look = async (): Promise<Record<string, unknown>> => {
        for (;;) {
          const index = events.findIndex((event) => event['type'] === type)
          if (index >= 0) return events.splice(index, 1)[0]!
          await new Promise<void>((resolve) => (told = resolve))
        }
      }
      // Who is refused hears CALL_CLOSED in place of CALL_ESTABLISHED.
      return inTime(`${type} of baresip`, look(), () => events)
    },
    close: async () => void socket.destroy(),
  }
}

/** The strongest pitch from 100 to 3400 Hz in steps of 10, by the Goertzel algorithm over the loudest half second. */
export function dominantHertz({ samples, rateHz }: { readonly samples: Int16Array; readonly rateHz: number }): number {
  const part = loudest(samples, rateHz / 2)
  let best = { hertz: 0, power: 0 }
  for (let hertz = 100; hertz <= 3_400; hertz += 10) {
    const power = powerAt(part, hertz, rateHz)
    if (power > best.power) best = { hertz, power }
  }
  return best.hertz
}

function loudest(samples: Int16Array, length: number): Int16Array {
  const energyAt = (start: number) =>
    samples.subarray(start, start + length).reduce((sum, sample) => sum + sample ** 2, 0)
  let best = { start: 0, energy: -1 }
  for (let start = 0; start + length <= samples.length; start += length / 2) {
    const energy = energyAt(start)
    if (energy > best.energy) best = { start, energy }
  }
  return samples.subarray(best.start, best.start + length)
}

function powerAt(samples: Int16Array, hertz: number, rateHz: number): number {
  const turn = 2 * Math.cos((2 * Math.PI * hertz) / rateHz)
  let [before, last] = [0, 0]
  for (const sample of samples) [before, last] = [last, sample + turn * last - before]
  return before ** 2 + last ** 2 - turn * before * last
}
