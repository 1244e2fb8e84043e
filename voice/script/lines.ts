/** Owns how the lines of a call script make blocks: paragraphs and list items of prose, and statements with the lines that go on with them. */

export type BlockKind = 'prose' | 'statement' | 'intent' | 'on' | 'voicemail' | 'reprompt'
/** With the number of its first line. */
export type Block = { readonly line: number; text: string; readonly kind: BlockKind }

/** A name that is one word, or any name in quotes. */
export const toolName = String.raw`(?:[\w.-]+|["“][^"“”]{1,200}["”])`

const statement = new RegExp(
  String.raw`^((say|ask|end|if)\b(?![-'’])|tool\s+${toolName}\s*(\(|into\s|:|$)|transfer\s[^:]{1,100}:|knowledge\s+(on|off)$)`,
)
/** Recognised even in the middle of a paragraph, where a line of prose may begin with any word. */
const unmistakable = new RegExp(
  String.raw`^(ask\s+\w+\s*\(|if\s+[\w.-]+\s+is\s.*:|end\s*(\(|:|$)|say:|tool\s+${toolName}\s*(\(|into\s+\w+\s*:|:)|knowledge\s+(on|off)$)`,
)
const intent = /^intent\s+\w+\s*:/
const voicemail = /^voicemail\s*:/
const reprompt = /^no\s+(match|input)\s*:/
/** Prose may begin with it: what follows the colon, or an intent somewhere, tells. */
const on = /^on\s+\w+\s*:/
const acting = /^on\s+\w+\s*:\s*(say|ask|end|if|tool|transfer|knowledge)\b/
const bullet = /^(?:[-*+•]|\d{1,3}[.)])\s+/

export function blocksOf(text: string): Block[] {
  const lines = text.split(/\r\n|\r|\n/)
  const hasIntents = lines.some((line) => intent.test(line.trim()))
  const blocks: Block[] = []
  let open = null as Block | null
  for (const [index, raw] of lines.entries()) {
    // Runs of spaces mean nothing, and would cost the patterns of statements dear.
    const line = raw.trim().replace(/\s+/g, ' ')
    if (line.startsWith('#') || !/[\p{L}\p{N}]/u.test(line)) {
      open = null
      continue
    }
    const rest = line.replace(bullet, '')
    const isNew = rest !== line
    const kind = kindOf(rest, { isInside: open?.kind === 'prose' && !isNew, hasIntents })
    const isIndented = /^\s/.test(raw) && !isNew && kind !== 'reprompt'
    if (open !== null && !isNew && (isIndented || (kind === 'prose' && open.kind === 'prose'))) {
      open.text += ` ${rest}`
      continue
    }
    open = { line: index + 1, text: rest, kind }
    blocks.push(open)
  }
  return blocks
}

type Place = { readonly isInside: boolean; readonly hasIntents: boolean }

function kindOf(line: string, { isInside, hasIntents }: Place): BlockKind {
  if (intent.test(line)) return 'intent'
  if (voicemail.test(line)) return 'voicemail'
  if (reprompt.test(line)) return 'reprompt'
  if (on.test(line) && (hasIntents || acting.test(line))) return 'on'
  return (isInside ? unmistakable : statement).test(line) ? 'statement' : 'prose'
}
