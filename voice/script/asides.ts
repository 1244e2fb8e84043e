/** Owns what happens beside the steps of a call script: on an intent, or on a request that every caller can make. */
import type { EngineTool } from '../../model/voice-engine.ts'
import type { Options, Script, Step, ToolStep } from './steps.ts'
import { toolNamed, transferTo, transferTool } from './tools.ts'

export type Aside = { readonly name: string; readonly line: number; readonly steps: Step[] }

/** What a script may say in its own way. */
export const ownRequests: readonly string[] = ['help', 'stop', 'person']

export function addAside(asides: Aside[], aside: Aside): void {
  const earlier = asides.find(({ name }) => name === aside.name)
  if (earlier) earlier.steps.push(...aside.steps)
  else asides.push(aside)
}

/** A caller who wants a person gets the first one whom the script, or the tool, names. */
export function asidesOf(steps: readonly Step[], asides: readonly Aside[], { tools = [] }: Options): Script['asides'] {
  const found = new Map<string, readonly Step[]>(asides.map(({ name, steps: own }) => [name, own]))
  const tool = toolNamed(tools, transferTool)
  if (tool === null || found.has('person')) return found
  const all = [...steps, ...asides.flatMap((aside) => aside.steps)]
  const written = all.find((step): step is ToolStep => step.kind === 'tool' && step.purpose === 'transfer')
  const target = written ? textOf(written) : namedBy(tool)
  if (target === null) return found
  const step = transferTo(
    { line: written?.line ?? 1, when: null },
    target,
    'One moment, I will put you through.',
    tools,
  )
  return found.set('person', [step])
}

function textOf({ arguments: [to] }: ToolStep): string | null {
  return to?.value && 'text' in to.value ? to.value.text : null
}

function namedBy({ inputSchema }: EngineTool): string | null {
  const to = inputSchema.properties['to']
  const names = typeof to === 'object' && to !== null && 'enum' in to ? to['enum'] : null
  const first: unknown = Array.isArray(names) ? names[0] : null
  return typeof first === 'string' ? first : null
}
