/** Owns the sentences that a dialogue says by itself. */
import type { Ask, AskedSlot } from '../steps.ts'

export const noPerson = 'I am an automated voice, and I cannot put you through to a person.'
export const gaveUp = 'I am sorry, I could not understand you. Let us go on.'
export const stopped = 'All right.'
export const stillWorking = 'One moment, please.'
export const lookingUp = 'Let me look that up.'
export const unknownAnswer = 'I am sorry, I do not know that.'
export const toolMissing = 'I am sorry, I cannot do that on this call.'
export const toolFailed = 'I am sorry, that did not work.'
export const toolDropped = 'All right, I have left that.'
export const transferFailed = 'I am sorry, I cannot put you through now.'
export const transferUnanswered = 'I am sorry, nobody has taken the call.'

/** Before a question that is asked again for the `times`th time because its answer was not understood. */
export function againOf(ask: Ask, times: number): string {
  if (ask.noMatch.length > 0) return ask.noMatch[Math.min(times, ask.noMatch.length) - 1] ?? ''
  return times === 1 ? 'Sorry, I did not understand that.' : `Sorry. ${hintOf(ask.slot)}`
}

/** The same because nobody said anything. */
export function stillThereOf(ask: Ask, times: number): string {
  if (ask.noInput.length > 0) return ask.noInput[Math.min(times, ask.noInput.length) - 1] ?? ''
  return times === 1 ? 'Are you still there?' : `I cannot hear you. ${hintOf(ask.slot)}`
}

/** Before the call is ended, or passed on, at words that may have been others. */
export const doubtOf = (request: 'goodbye' | 'person'): string =>
  request === 'goodbye' ? 'Would you like to end the call?' : 'Would you like to speak to a person?'

export const readBackOf = (spoken: string): string => `I heard ${spoken}. Is that right?`

export function hintOf(slot: AskedSlot): string {
  switch (slot.kind) {
    case 'choices': {
      const names = slot.choices.map((choice) => choice.name)
      const digits = names.slice(0, 9).map((name, index) => `${index + 1} for ${name}`)
      return `You can say ${listed(names)}, or press ${listed(digits)}.`
    }
    case 'digits':
      return `You can say or press ${countOf(slot.min, slot.max)}, one by one${slot.min === slot.max ? '' : ', and the hash key at the end'}.`
    case 'number':
      return `You can say a number from ${slot.min} to ${slot.max}, or press it, and the hash key at the end.`
    case 'date':
      return 'You can say a day, like tomorrow, next Tuesday, or May the third.'
    case 'time':
      return 'You can say a time, like half past three, or nine in the morning.'
    case 'free':
      return 'You can say it in a few words.'
  }
}

function countOf(min: number, max: number): string {
  if (min === max) return min === 1 ? '1 digit' : `${min} digits`
  return `${min} to ${max} digits`
}

const listed = (items: readonly string[]): string =>
  items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} or ${items.at(-1)}`
