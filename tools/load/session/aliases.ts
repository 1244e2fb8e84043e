/** Owns by what names of a session file are replaced: the same one by the same one, of ranges that are reserved for documents and examples. */
import { createHash, randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { withoutBrackets } from '../../../net/addresses.ts'
import { Cannot } from '../../cannot.ts'

export type Aliases = {
  /** RFC 5737, RFC 3849; a name becomes one below `.invalid` (RFC 2606). */
  address(given: string): string
  /** NANP 555-01XX for what is a number. */
  user(given: string): string
  /** Of tags, Call-IDs, branches, credentials. */
  token(kind: string, given: string): string
  /** What was replaced. */
  originals(): readonly string[]
}

/** Shorter ones are found in anything. */
const tellingLength = 5

/** `avoided`: what no alias may contain. */
export function createAliases(avoided: readonly string[] = []): Aliases {
  const addresses = new Map<string, string>()
  const users = new Map<string, string>()
  const tokens = new Set<string>()
  // Who knows what was replaced cannot look it up by its hash.
  const salt = randomBytes(16)
  const kept = (map: Map<string, string>, key: string, make: (count: number) => string): string => {
    const known = map.get(key)
    if (known !== undefined) return known
    const made = freshOf(make, map.size + 1, [...avoided, ...map.values()])
    map.set(key, made)
    return made
  }
  return {
    address: (given) =>
      kept(addresses, withoutBrackets(given).toLowerCase(), (count) => {
        const family = isIP(withoutBrackets(given))
        if (family === 0) return `host-${count}.invalid`
        return family === 4 ? `192.0.2.${1 + (count % 254)}` : `2001:db8::${count.toString(16)}`
      }),
    user: (given) =>
      kept(users, given, (count) =>
        /^\+?[\d().-]{3,}$/.test(given) && count < 100
          ? `+1202555${String(100 + count).padStart(4, '0')}`
          : `user-${count}`,
      ),
    token(kind, given) {
      tokens.add(given)
      return createHash('sha256').update(salt).update(`${kind} ${given}`).digest('hex').slice(0, 16)
    },
    originals: () =>
      [...addresses, ...users]
        .filter(([given, made]) => given !== made)
        .map(([given]) => given)
        .concat([...tokens])
        .filter((given) => given.length >= tellingLength),
  }
}

const attempts = 1_000

function freshOf(make: (count: number) => string, from: number, avoided: readonly string[]): string {
  for (let count = from; count < from + attempts; count++) {
    const made = make(count)
    if (!avoided.some((original) => made.includes(original))) return made
  }
  throw new Cannot('the file has more names than there are others for')
}
