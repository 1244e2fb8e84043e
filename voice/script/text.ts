/** Owns how text of a call script is made fit to be said. */

/** Marks of emphasis and code are for the eye. What stands between them is short: else each mark is looked for to the end of the text. */
export const plain = (text: string): string =>
  text
    .replace(/(\*\*|__|[*`~])(?=\S)(.{1,200}?)(?<=\S)\1/g, '$2')
    .replace(/\s+/g, ' ')
    .trim()
