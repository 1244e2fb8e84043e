/** Owns what settings are made of: the schemas of single values, and how a wrong one is told. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import tls from 'node:tls'
import { z } from 'zod'
import { plainAddressOf } from '../../net/addresses.ts'
import { isAllowEntry } from '../../net/allow-list.ts'

export const text = z.string().trim()
const portRule = 'must be a whole number from 0 to 65535'
export const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().default(null)

export const Port = text
  .regex(/^\d{1,5}$/, portRule)
  .transform(Number)
  .refine((port) => port <= 65_535, portRule)
/** A service without any would be none. */
export const ConnectionCount = z.coerce.number().int('must be a whole number').min(10).max(1_000_000)
export const PortRange = text
  .regex(/^\d+-\d+$/, 'must read like 40000-49999')
  .transform((range) => range.split('-').map(Number) as [number, number])
  .refine(([from, to]) => from >= 1024 && to <= 65_535 && from < to, 'must lie within 1024-65535, the lower port first')
export const List = text.transform((list) =>
  list
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== ''),
)
/** May be closed to tenants otherwise. */
export const Hosts = List.refine(
  (list) => list.every(isAllowEntry),
  'must be host names, addresses or networks like 10.0.0.0/8, with commas between them',
)
export const IpAddress = text
  .refine((address) => plainAddressOf(address) !== null, 'must be an IP address')
  .transform((address) => plainAddressOf(address) ?? address)
export const url = (protocol: RegExp, schemes: string) =>
  z.url({ protocol, error: `must be a URL that begins with ${schemes}` })

/** One, or several with commas between. */
export const urls = (protocol: RegExp, schemes: string) => {
  const One = url(protocol, schemes)
  const isOne = (text: string): boolean => One.safeParse(text.trim()).success
  return text.refine(
    (list) => list.split(',').every(isOne),
    `must be a URL that begins with ${schemes}, or several with commas between`,
  )
}

export const WebSocketUrl = url(/^wss?$/, 'wss:// or ws://')
export const HttpUrl = url(/^https?$/, 'http:// or https://').transform((given) => given.replace(/\/+$/, ''))
export const Rate = text
  .regex(/^(?:8000|16000|24000|48000)$/, 'must be 8000, 16000, 24000 or 48000')
  .transform((rate) => Number(rate) as 8000 | 16_000 | 24_000 | 48_000)
/** Goes into a header: printable, in one piece. */
export const ApiKey = text.regex(/^[\x21-\x7e]{1,1000}$/, 'must be one word of printable ASCII')

/** Its message is for the operator: it names each variable and says what is wrong with it. */
export class WrongSettings extends Error {
  override readonly name = 'WrongSettings'
}

/** Two that go together, by their names. Null where neither is set. */
export function pairOf<One, Other>(
  one: Readonly<Record<string, One | null>>,
  other: Readonly<Record<string, Other | null>>,
): readonly [One, Other] | null {
  const [[oneName, first], [otherName, second]] = [Object.entries(one)[0]!, Object.entries(other)[0]!]
  if (first === null && second === null) return null
  if (first === null || second === null)
    throw new WrongSettings(`${oneName} and ${otherName} go together: set both, or neither`)
  return [first, second]
}

/** The settings by their names, so that an error can name them. */
export function pemsOf(
  certFile: Readonly<Record<string, string | null>>,
  keyFile: Readonly<Record<string, string | null>>,
): { readonly cert: string; readonly key: string } | null {
  const files = pairOf(certFile, keyFile)
  if (files === null) return null
  const [certName = '', keyName = ''] = [...Object.keys(certFile), ...Object.keys(keyFile)]
  const pems = { cert: readPem(certName, files[0]), key: readPem(keyName, files[1]) }
  try {
    tls.createSecureContext(pems)
  } catch (error) {
    throw new WrongSettings(`${certName} and ${keyName}: the files are not a certificate and its key`, { cause: error })
  }
  return pems
}

/** Certificates of those who are believed. */
export function readAuthority(name: string, file: string): string {
  const pem = readPem(name, file)
  try {
    new X509Certificate(pem)
  } catch (error) {
    throw new WrongSettings(`${name}: the file ${file} is no certificate in PEM`, { cause: error })
  }
  return pem
}

function readPem(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new WrongSettings(`${name}: the file ${file} cannot be read`, { cause: error })
  }
}

/** Who sets what has no effect has forgotten something. */
export function nothingWithout(name: string, others: Readonly<Record<string, string | number | null>>): null {
  const [idle] = Object.entries(others).find(([, value]) => value !== null) ?? []
  if (idle !== undefined) throw new WrongSettings(`${idle} needs ${name}: set both, or neither`)
  return null
}
