/** Owns what is listened for in the first words of who takes an outbound call: what answering machines say. Two of them are told, one may be chance. */

export const answeringMachinePhrases: readonly string[] = [
  'after the tone',
  'after the beep',
  'after the signal',
  'at the tone',
  'at the beep',
  'leave a message',
  'leave me a message',
  'leave your message',
  'leave your name',
  'record your message',
  'voice mail',
  'mailbox',
  'is not available',
  'come to the phone',
  'take your call',
]

/** Words apart from the rest of what was said, which was not understood; null when there are too few. */
export function answeringMachineTextOf(words: readonly string[], isKnown: (word: string) => boolean): string | null {
  const spoken = words.map((word) => (isKnown(word) ? word : '…')).join(' ')
  const told = answeringMachinePhrases.filter((phrase) => ` ${spoken} `.includes(` ${phrase} `))
  if (told.length < 2) return null
  return spoken.replace(/…( …)*/g, '…')
}
