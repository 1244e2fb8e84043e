/**
 * Owns the voices that the embedded ear was not tuned with: programs of this machine (festival, espeak-ng) and recordings of people from Debian's
 * packages, which are downloaded and unpacked into a temporary folder when the bench runs. Nothing of them is kept in the project.
 */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import process from 'node:process'
import { createG722Decoder } from '../../media/codecs/g722.ts'
import { joined } from '../../media/pcm/joined.ts'
import { createResampler } from '../../media/pcm/resample.ts'
import { createFlite } from '../../voice/engines/embedded/flite.ts'

/** Rejects what it cannot say. 16 kHz. */
export type Voice = { readonly name: string; readonly group: string; say(text: string): Promise<Int16Array> }

const folder = path.join(os.tmpdir(), `parley-ear-${process.pid}`)
const lineRateHz = 16_000

/** Removes what was unpacked and made. */
export const removeVoices = (): void => rmSync(folder, { recursive: true, force: true })

/** Those that can be had here; `tell` says which cannot. */
export async function otherVoices(tell: (line: string) => void): Promise<readonly Voice[]> {
  mkdirSync(folder, { recursive: true })
  const flite = await createFlite()
  const kal: Voice = {
    name: 'kal16',
    group: 'flite, in the regression',
    say: (text) => Promise.resolve(flite('kal16', text)),
  }
  const programs = [
    ...['kal_diphone', 'ked_diphone'].map(festivalVoice),
    ...['en-us', 'en-gb', 'en-gb-scotland', 'en-029'].map(espeakVoice),
  ]
  const found: Voice[] = [kal]
  for (const voice of programs) {
    const sound = await voice.say('hello').catch(() => null)
    if (sound !== null && sound.length > 0) found.push(voice)
    else tell(`${voice.group} ${voice.name}: not installed (apt-get install festival festvox-kallpc16k espeak-ng)`)
  }
  return found
}

function festivalVoice(name: string): Voice {
  return {
    name,
    group: 'festival',
    async say(text) {
      const file = path.join(folder, 'festival.wav')
      const spoken = text.replace(/["\\]/g, '')
      await ran(
        'festival',
        ['--pipe'],
        `(voice_${name}) (utt.save.wave (utt.synth (Utterance Text "${spoken}")) "${file}" 'riff)`,
      )
      return wavOf(readFileSync(file))
    },
  }
}

function espeakVoice(accent: string): Voice {
  return {
    name: accent,
    group: 'espeak',
    async say(text) {
      const file = path.join(folder, 'espeak.wav')
      await ran('espeak-ng', ['-v', accent, '-w', file, text], '')
      return wavOf(readFileSync(file))
    },
  }
}

function ran(program: string, given: readonly string[], input: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, [...given], (error) => (error ? reject(error) : resolve()))
    // A program that does not read has ended by itself, and how is told by its exit code.
    child.stdin?.on('error', () => undefined)
    if (input !== '') child.stdin?.end(input)
  })
}

/** One professional speaker: words of telephone prompts, one after another. Null where the package cannot be had. */
export function promptVoice(tell: (line: string) => void): Voice | null {
  const root = unpacked('asterisk-core-sounds-en-g722', tell)
  const prompts = root && path.join(root, 'usr/share/asterisk/sounds/en_US_f_Allison')
  if (prompts === null || !existsSync(prompts)) return null
  const one = (file: string): Int16Array => {
    const bytes = readFileSync(path.join(prompts, `${file}.g722`))
    const sound = new Int16Array(bytes.length * 2)
    createG722Decoder().decode(bytes, sound)
    return trimmed(sound)
  }
  // What is said is named by its files, apart by spaces.
  return { name: 'Allison', group: 'people', say: (files) => Promise.resolve(joined(files.split(' ').map(one))) }
}

/** Hold music as it is, 8 kHz brought to 16. */
export function promptMusic(tell: (line: string) => void): readonly Int16Array[] {
  const root = unpacked('asterisk-moh-opsound-wav', tell)
  const names = ['macroform-cold_day', 'macroform-robot_dity', 'manolo_camp-morning_coffee', 'reno_project-system']
  const files = names.map((name) => path.join(root ?? '', `usr/share/asterisk/moh/${name}.wav`))
  return files.filter((file) => existsSync(file)).map((file) => wavOf(readFileSync(file)).subarray(0, lineRateHz * 60))
}

function unpacked(name: string, tell: (line: string) => void): string | null {
  const root = path.join(folder, name)
  try {
    mkdirSync(root, { recursive: true })
    execFileSync('apt-get', ['download', '-q', name], { cwd: root, stdio: 'ignore' })
    execFileSync('sh', ['-c', 'dpkg-deb -x ./*.deb .'], { cwd: root, stdio: 'ignore' })
    return root
  } catch {
    tell(`the package ${name} cannot be downloaded here (apt-get download): its sounds are left out`)
    return null
  }
}

/** Without the silence around. */
function trimmed(sound: Int16Array): Int16Array {
  const from = sound.findIndex((sample) => Math.abs(sample) > 200)
  const to = sound.findLastIndex((sample) => Math.abs(sample) > 200)
  return sound.slice(Math.max(0, from - 480), to + 960)
}

/** 16-bit mono of any rate. */
function wavOf(file: Buffer): Int16Array {
  const format = file.indexOf('fmt ')
  const start = file.indexOf('data')
  const rateHz = file.readUInt32LE(format + 12)
  const bytes = file.subarray(start + 8)
  const samples = Int16Array.from({ length: bytes.length >> 1 }, (_, index) => bytes.readInt16LE(2 * index))
  return createResampler(rateHz, lineRateHz)?.convert(samples).slice() ?? samples
}
