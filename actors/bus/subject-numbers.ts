/**
 * Owns the numbers by which a thread names the subjects that it publishes on: a subject is told as text with the first message of it, and by its number from
 * then on, since frames come fifty times a second and call. A bounded number of subjects has one; the oldest gives its own up.
 */

export type SubjectNumbers = {
  /** 0: it has none. */
  numberOf(subject: string): number
  /** Of the next subject that has none. */
  next(): number
  /** `next` was told with this subject. */
  told(subject: string): void
}

/** A thousand calls with a few subjects each. */
export const maxNumbers = 4_096

export function createSubjectNumbers(): SubjectNumbers {
  const numbers = new Map<string, number>()
  /** By number. */
  const subjects: string[] = ['']
  let last = 0
  const next = (): number => (last % maxNumbers) + 1
  return {
    numberOf: (subject) => numbers.get(subject) ?? 0,
    next,
    told(subject) {
      last = next()
      const former = subjects[last]
      if (former !== undefined) numbers.delete(former)
      subjects[last] = subject
      numbers.set(subject, last)
    },
  }
}
