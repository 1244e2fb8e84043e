/**
 * Owns the names that engines know tools by. A tool of an integrator has any name; hosted models take letters, digits, `_` and `-`, 64 at most
 * (OpenAI; Gemini wants a letter first). Of the same tools in the same order it always makes the same names: an actor that takes a call over answers the
 * calls of the one before it.
 */
import type { ToolDescriptor } from '../../model/tool.ts'
import { engineToolNames } from '../../model/voice-engine.ts'

const maxLength = 64
const plain = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/

type Named = Pick<ToolDescriptor, 'provider' | 'name'>

/** One for each, in their order; no two are alike. */
export function engineNamesOf(tools: readonly Named[]): string[] {
  const taken = new Set<string>()
  return tools.map((tool) => {
    const wished = engineNameOf(tool)
    let name = wished
    for (let number = 2; taken.has(name); number++) name = numbered(wished, number)
    taken.add(name)
    return name
  })
}

/** An external tool keeps its name where every engine can take it; the others have their provider in front, so that nothing stands for two tools. */
function engineNameOf({ provider, name }: Named): string {
  const isOwn = provider === 'external' && plain.test(name) && !engineToolNames.includes(name) && !name.includes('__')
  return isOwn ? name : `${provider}__${lettersOf(name)}`.slice(0, maxLength)
}

/** `Küche öffnen!` gives `Kuche_offnen_`. */
const lettersOf = (name: string): string =>
  name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^A-Za-z0-9_-]+/g, '_')

const numbered = (name: string, number: number): string => {
  const ending = `_${number}`
  return `${name.slice(0, maxLength - ending.length)}${ending}`
}
