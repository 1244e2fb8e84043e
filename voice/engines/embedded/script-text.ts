/** Owns how text of a call script is made fit to be said. */

/** Marks of emphasis and code are for the eye. */
export const plain = (text: string): string =>
  text
    .replace(/(\*\*|__|[*`~])(?=\S)(.+?)(?<=\S)\1/g, '$2')
    .replace(/\s+/g, ' ')
    .trim()
