/** Owns text from the network on a terminal: it must not steer it, nor turn it around, nor break a line that is one. */

/** All control characters but line feed and tab, other line ends, and what changes the direction of writing, as escapes of JSON: JSON stays JSON. */
export function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]|[\u2028-\u202e\u2066-\u2069]/gu, (char) => `\\u${hexOf(char.charCodeAt(0))}`)
}

const hexOf = (code: number): string => code.toString(16).padStart(4, '0')
