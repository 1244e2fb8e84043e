/** Owns the grammar of IP addresses: from text to words of 16 bits, and back. Zones are no part of it. Pure. RFC 4291 §2.2, RFC 5952. */

/** Two of IPv4, eight of IPv6. */
export type AddressWords = readonly number[]

const [zero, nine, dot, colon] = [48, 57, 46, 58]

/** Of hexadecimal digits, by the codes of their characters. */
const digitValues = new Int8Array(128).fill(-1)
for (const digit of '0123456789abcdefABCDEF') digitValues[digit.charCodeAt(0)] = Number.parseInt(digit, 16)

/** Null: no address. In one pass, because messages and requests are counted by it. */
export function wordsOf(text: string): AddressWords | null {
  if (text.includes(':')) return wordsOfIpv6(text)
  const address = readIpv4(text, 0)
  return address < 0 ? null : [address >>> 16, address & 0xffff]
}

function wordsOfIpv6(text: string): AddressWords | null {
  const words = [0, 0, 0, 0, 0, 0, 0, 0]
  let count = 0
  let word = 0
  /** How many words stand in front of `::`. */
  let gap = text.startsWith('::') ? 0 : -1
  let start = gap === 0 ? 2 : 0
  for (let at = start; at <= text.length; at += 1) {
    const code = at === text.length ? colon : text.charCodeAt(at)
    const digit = digitValues[code] ?? -1
    if (digit >= 0) {
      word = (word << 4) | digit
    } else if (code === dot) {
      const address = readIpv4(text, start)
      if (address < 0 || count > 6) return null
      words[count++] = address >>> 16
      words[count++] = address & 0xffff
      break
    } else if (code !== colon || count === 8 || at - start > 4) {
      return null
    } else if (at > start) {
      words[count++] = word
      word = 0
      start = at + 1
    } else if (at === text.length) {
      // Nothing stands behind the last colon: that is the end of `1::`.
      if (gap !== count) return null
    } else {
      if (gap >= 0 || at === 0) return null
      gap = count
      start = at + 1
    }
  }
  return widened(words, count, gap)
}

/** With the zeros that `::` stands for: at least one word. */
function widened(words: number[], count: number, gap: number): AddressWords | null {
  if (gap < 0) return count === 8 ? words : null
  if (count === 8) return null
  words.copyWithin(8 - count + gap, gap, count)
  return words.fill(0, gap, 8 - count + gap)
}

/** From `start` to the end of the text. -1: none; octets have no leading zeros, which some systems read as octal. */
function readIpv4(text: string, start: number): number {
  let address = 0
  let octets = 0
  let octet = 0
  let from = start
  for (let at = start; at <= text.length; at += 1) {
    const code = at === text.length ? dot : text.charCodeAt(at)
    if (code >= zero && code <= nine) {
      octet = octet * 10 + code - zero
      continue
    }
    const length = at - from
    if (code !== dot || length === 0 || length > 3 || octet > 255) return -1
    if (length > 1 && text.charCodeAt(from) === zero) return -1
    address = address * 256 + octet
    octets += 1
    octet = 0
    from = at + 1
  }
  return octets === 4 ? address : -1
}

/** RFC 5952 §4: of IPv6 the first of the longest runs of zeros is left out, unless it is a single word. */
export function textOf(words: AddressWords): string {
  if (words.length === 2) return dottedOf(words)
  const [from, to] = longestZeros(words)
  if (to - from < 2) return words.map(hexadecimal).join(':')
  return `${words.slice(0, from).map(hexadecimal).join(':')}::${words.slice(to).map(hexadecimal).join(':')}`
}

function longestZeros(words: AddressWords): readonly [from: number, to: number] {
  let longest: readonly [number, number] = [0, 0]
  let from = 0
  words.forEach((word, index) => {
    if (word !== 0) from = index + 1
    else if (index + 1 - from > longest[1] - longest[0]) longest = [from, index + 1]
  })
  return longest
}

const dottedOf = ([high = 0, low = 0]: AddressWords): string => `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
const hexadecimal = (word: number): string => word.toString(16)
