/** Owns what every bus refuses and how patterns match, so that what passes on one bus passes on the other. Subjects are dot-separated tokens. */

/** What a nats-server takes by default. */
const maxPayloadBytes = 1024 * 1024

const subjectShape = /^[^\s.*>]+(?:\.[^\s.*>]+)*$/
const patternShape = /^(?:(?:[^\s.*>]+|\*)(?:\.(?:[^\s.*>]+|\*))*(?:\.>)?|>)$/

/** Throws TypeError for a subject no message can have: empty tokens, blanks or wildcards. */
export function assertSubject(subject: string): void {
  if (!subjectShape.test(subject)) throw new TypeError(`not a bus subject: ${JSON.stringify(subject)}`)
}

/** Throws RangeError for what a bus between nodes could not carry. */
export function assertPayload(payload: Uint8Array): void {
  if (payload.length > maxPayloadBytes) throw new RangeError(`a bus message carries at most ${maxPayloadBytes} bytes`)
}

/** Throws TypeError for a pattern with empty tokens, blanks, or a `>` that is not last. */
export function assertPattern(pattern: string): void {
  if (!patternShape.test(pattern)) throw new TypeError(`not a bus pattern: ${JSON.stringify(pattern)}`)
}

export const isWildcard = (pattern: string): boolean => /[*>]/.test(pattern)

/** `*` stands for exactly one token, a final `>` for one or more. */
export function subjectMatches(pattern: string, subject: string): boolean {
  const wanted = pattern.split('.')
  const tokens = subject.split('.')
  const open = wanted.at(-1) === '>'
  if (open ? tokens.length < wanted.length : tokens.length !== wanted.length) return false
  const fixed = open ? wanted.slice(0, -1) : wanted
  return fixed.every((token, index) => token === '*' || token === tokens[index])
}
