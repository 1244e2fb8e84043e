/** Owns what is read of the provider's errors: which another try does not mend, and what of them may be repeated. The codes are its own. */
import { textOf, type Message } from './fields.ts'

const fatal = new Set([
  'insufficient_quota',
  'invalid_api_key',
  'account_deactivated',
  'billing_hard_limit_reached',
  'model_not_found',
])

export const isFatal = (code: string): boolean => fatal.has(code)

/** The provider's own trouble, which a moment later may be over. */
export const isPassing = (code: string, type: string): boolean =>
  isRateLimit(code) || [code, type].some((name) => /^(rate_limit|server_error|overloaded|internal_error)/.test(name))

/** `rate_limit_exceeded` at OpenAI, `inference_rate_limit_exceeded` at Azure, whose type is that of a wrong request. */
export const isRateLimit = (code: string): boolean => /rate_limit|too_many_requests/.test(code)

/** What it says in its own words may repeat a part of the key, or what the caller said: only names are told; '' for anything else. */
export const nameOf = (value: unknown): string => /^[a-zA-Z][\w.[\]]{0,99}$/.exec(textOf(value))?.[0] ?? ''

export const codeOf = ({ code, type }: Message): string => nameOf(code) || nameOf(type) || 'no code'
