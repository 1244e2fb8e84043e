/** Owns reading scenarios: every fault is told with file, line and field, all of them at once. */
import { readFile, stat, readdir } from 'node:fs/promises'
import path from 'node:path'
import { isMap, isNode, isScalar, LineCounter, parseDocument, type Document } from 'yaml'
import { issuesOf } from '../../model/issues.ts'
import { Cannot, orCannot } from '../cannot.ts'
import { formatVersion, Scenario } from './scenario.ts'
import { readSound } from './sound-file.ts'

export class WrongScenario extends Cannot {
  override readonly name = 'WrongScenario'
}

export type ReadScenario = {
  /** As it was named. */
  readonly file: string
  /** Where sound files of it lie. */
  readonly folder: string
  readonly scenario: Scenario
}

const maxBytes = 1024 * 1024

/** Files, or folders of which all `.yaml` files are meant, in order of their names. Throws WrongScenario. */
export async function readScenarios(named: readonly string[]): Promise<ReadScenario[]> {
  const files = (await Promise.all(named.map(filesOf))).flat()
  if (files.length === 0) throw new WrongScenario(`${named.join(', ')}: there is no scenario (*.yaml)`)
  const read = await Promise.allSettled(files.map(readScenario))
  const faults = read.flatMap((result) => (result.status === 'rejected' ? [String(result.reason.message)] : []))
  if (faults.length > 0) throw new WrongScenario(faults.join('\n'))
  return read.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
}

async function filesOf(named: string): Promise<string[]> {
  const found = await stat(named).catch(() => null)
  if (!found) throw new WrongScenario(`${named}: there is no such file`)
  if (!found.isDirectory()) return [named]
  const names = await readdir(named)
  return names
    .filter((name) => /\.ya?ml$/.test(name))
    .toSorted()
    .map((name) => path.join(named, name))
}

async function readScenario(file: string): Promise<ReadScenario> {
  const bytes = await orCannot(file, () => readFile(file))
  if (bytes.length > maxBytes) throw new WrongScenario(`${file}: must have at most ${maxBytes} bytes`)
  const [folder, scenario] = [path.dirname(file), parseScenario(bytes.toString('utf8'), file)]
  for (const [place, turn] of scenario.turns.entries()) {
    const { sound } = turn as { readonly sound?: string }
    // What cannot be played is told before anybody is called.
    if (sound !== undefined)
      await orCannot(`${file}: turns.${place}.sound: ${sound}`, () => readSound(path.resolve(folder, sound)))
  }
  return { file, folder, scenario }
}

/** Throws WrongScenario. */
export function parseScenario(text: string, file: string): Scenario {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const at = (offset: number): string => `${file}:${lines.linePos(offset).line}`
  if (document.errors.length > 0)
    throw new WrongScenario(document.errors.map(({ pos, message }) => `${at(pos[0])}: ${message}`).join('\n'))
  // An alias may not make a small file a huge value.
  const value = valueOf(document, file)
  const version = (value as { simulation?: unknown } | null)?.simulation
  if (typeof version === 'number' && version > formatVersion)
    throw new WrongScenario(`${file}: simulation: is version ${version}, and this program reads ${formatVersion}`)
  const read = Scenario.safeParse(value)
  if (read.success) return read.data
  const faults = issuesOf(read.error, value).map(({ path: field, message }) => {
    const offset = offsetOf(document, field)
    return `${offset === null ? `${file}:1` : at(offset)}: ${field || 'the scenario'}: ${message}`
  })
  throw new WrongScenario(faults.join('\n'))
}

function valueOf(document: Document, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    throw new WrongScenario(`${file}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Of the field, or of what it should stand in. */
function offsetOf(document: Document, field: string): number | null {
  const keys = field === '' ? [] : field.split('.')
  for (let depth = keys.length; depth > 0; depth--) {
    const way = keys.slice(0, depth).map((key) => (/^\d+$/.test(key) ? Number(key) : key))
    const parent = document.getIn(way.slice(0, -1), true)
    if (isMap(parent)) {
      const pair = parent.items.find(({ key }) => isScalar(key) && String(key.value) === String(way.at(-1)))
      if (isNode(pair?.key) && pair.key.range) return pair.key.range[0]
    }
    const node = document.getIn(way, true)
    if (isNode(node) && node.range) return node.range[0]
  }
  return isNode(document.contents) && document.contents.range ? document.contents.range[0] : null
}
