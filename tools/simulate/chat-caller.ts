/** Owns a caller who is played by a chat model, over any endpoint that speaks OpenAI's chat completions: what the agent has said goes there, and what comes back is spoken. */
import { z } from 'zod'
import type { ActDeps, Stuck } from './act-turns.ts'

export type ChatEndpoint = { readonly url: string; readonly model: string; readonly key: string | null }

export type ChatDeps = Omit<ActDeps, 'soundOf'> & {
  readonly chat: ChatEndpoint
  readonly role: string
  soundOf(text: string): Promise<Int16Array>
}

type Message = { readonly role: 'system' | 'user' | 'assistant'; readonly content: string }

const rules = `You are on the telephone, as the caller. Each message is what the other side said. Answer with the words that you say next and nothing else: one or two short sentences, no markup.
Write [hang up] alone to end the call, [keys 123#] alone to press keys, [silence] alone to say nothing.`

const mostTurns = 60
const mostLetters = 400
const answeredWithin = 30_000
const mostAnswerBytes = 256 * 1024

const Completion = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string().nullable() }) })).min(1),
})

/** Null: the talk came to an end. */
export async function actByChat(deps: ChatDeps): Promise<Stuck | null> {
  const { leg, scenario, random } = deps
  const { caller } = scenario
  const messages: Message[] = [{ role: 'system', content: `${deps.role}\n\n${rules}` }]
  let cursor = 0
  const newWords = (): readonly string[] => deps.agentSaid().slice(cursor)
  const stuck = (wanted: string, turn: number): Stuck => ({ turn, wanted, heard: newWords(), tick: leg.now() })
  for (let turn = 1; turn <= mostTurns; turn++) {
    const [from, to] = caller.pause
    const pause = from + random.below(to - from + 1)
    const isTheirs = (): boolean => newWords().length > 0 && leg.agent().silentFor >= pause
    if (!(await leg.until(isTheirs, caller.patience)))
      return deps.isOver() ? null : stuck('the agent to say something', turn)
    messages.push({ role: 'user', content: newWords().join(' ') })
    const reply = await replyOf(deps.chat, messages).catch((error: unknown) => failureOf(error))
    if (typeof reply !== 'string') return stuck(`an answer of the chat model: ${reply.failure}`, turn)
    cursor = deps.agentSaid().length
    messages.push({ role: 'assistant', content: reply })
    const act = actOf(reply)
    if (act.kind === 'hang up') return null
    if (act.kind === 'keys') await leg.press(act.text)
    if (act.kind === 'say') await leg.speak('say', act.text, await deps.soundOf(act.text))
  }
  return stuck(`the call to end within ${mostTurns} turns`, mostTurns)
}

const failureOf = (error: unknown) => ({ failure: error instanceof Error ? error.message : String(error) })

/** What the model wants: an act in brackets counts alone only, so that nothing that is meant to be said is lost. */
export function actOf(reply: string): { readonly kind: 'say' | 'keys' | 'hang up' | 'silence'; readonly text: string } {
  const text = reply.replaceAll(/\s+/g, ' ').trim().slice(0, mostLetters)
  if (text === '' || /^\[silence\]$/i.test(text)) return { kind: 'silence', text: '' }
  if (/^\[hang ?up\]$/i.test(text)) return { kind: 'hang up', text: '' }
  const keys = /^\[keys ([0-9A-D*#]{1,32})\]$/i.exec(text)?.[1]
  return keys === undefined ? { kind: 'say', text } : { kind: 'keys', text: keys.toUpperCase() }
}

/** Throws when there is none in time, or no text in it. */
export async function replyOf({ url, model, key }: ChatEndpoint, messages: readonly Message[]): Promise<string> {
  const answer = await fetch(`${url.replace(/\/+$/, '')}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key !== null && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify({ model, messages }),
    signal: AbortSignal.timeout(answeredWithin),
  })
  const text = await boundedText(answer)
  if (!answer.ok) throw new Error(`${answer.status}: ${text.slice(0, 300)}`)
  const read = Completion.safeParse(JSON.parse(text))
  const content = read.data?.choices[0]?.message.content
  if (content === null || content === undefined) throw new Error('the answer has no text')
  return content
}

async function boundedText(answer: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of answer.body ?? []) {
    bytes += piece.length
    if (bytes > mostAnswerBytes) throw new Error(`the answer is over ${mostAnswerBytes} bytes`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}
