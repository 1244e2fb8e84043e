/** Owns what a transcript says where the caller used no words that are known: keys that were pressed, and speech that nobody could read. Every engine says it so. */

/** Something was said, and no words of it are known. */
export const unclear = '[unclear]'

/** Stands for a key that nobody may read. */
export const keyDot = '•'

/** `keys` in the order in which they were pressed. */
export const textOfKeys = (keys: Iterable<string>): string => `[pressed ${[...keys].join(' ')}]`

/** The keys of a text that `textOfKeys` wrote, without what is between them. Null: it is something else that was said. */
export const keysOf = (text: string): string | null => keysText.exec(text)?.[1]?.replaceAll(' ', '') ?? null

const keysText = /^\[pressed ([0-9A-D*#•](?: [0-9A-D*#•])*)\]$/
