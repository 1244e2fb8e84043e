/** Owns which errors of the provider another try does not mend. The codes are its own. */

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
  [code, type].some((name) => /^(rate_limit|server_error|overloaded|internal_error)/.test(name))
