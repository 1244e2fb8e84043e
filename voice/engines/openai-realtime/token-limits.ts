/** Owns how much a model of OpenAI Realtime can be told, and what is said of a prompt that is more. */
import { tokensIn } from '../hosted/token-estimate.ts'
import type { WireSetup } from '../hosted/wire.ts'

/** In tokens. `prompt`: instructions and tools; `all`: these, and what was said. */
type Limits = { readonly prompt: number; readonly all: number }

/**
 * Of the provider's guides and its reference (RealtimeTruncation): models of 32,000 tokens keep 4,096 for what they say and take a prompt of 16,384;
 * those of 128,000 keep 32,000, and no limit of their prompt is written down: half of the rest is left to the talk.
 */
const small: Limits = { prompt: 16_384, all: 28_224 }
const large: Limits = { prompt: 48_000, all: 96_000 }

/** A talk that goes on is told no more than this of what was said. */
const maxHistory = 12_000

/** Null: a model that is not known here. */
function limitsOf(model: string): Limits | null {
  if (/^gpt-realtime-(?:[2-9]|\d\d)(?:[.-]|$)/.test(model)) return large
  return /^gpt-(?:4o-(?:mini-)?)?realtime/.test(model) ? small : null
}

export type PromptSize = {
  /** What there is room for besides, of what was said before. */
  readonly historyTokens: number
  /** Null: it fits. */
  readonly tooLong: { readonly message: string; readonly isHopeless: boolean } | null
}

/** By the estimate of token-estimate.ts. `isHopeless`: no talk would fit beside it. */
export function promptSizeOf(
  model: string,
  { instructions, tools }: Pick<WireSetup, 'instructions' | 'tools'>,
): PromptSize {
  const limits = limitsOf(model)
  if (limits === null) return { historyTokens: maxHistory, tooLong: null }
  const tokens = tokensIn(instructions) + (tools.length === 0 ? 0 : tokensIn(JSON.stringify(tools)))
  const historyTokens = Math.min(maxHistory, Math.max(0, (limits.all - tokens) / 2))
  if (tokens <= limits.prompt) return { historyTokens, tooLong: null }
  const isHopeless = tokens > limits.all
  const most = isHopeless ? limits.all : limits.prompt
  const message = `the instructions and tools are about ${tokens} tokens long (estimated), and ${model} takes at most ${most}: shorten the script or the instructions, or offer fewer tools`
  return { historyTokens, tooLong: { message, isHopeless } }
}
