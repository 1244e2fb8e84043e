/**
 * Owns how secrets rest in the database (AES-256-GCM) and the keys behind it: from APP_SECRET, or from a file made once in the data folder. A
 * copy of the database alone gives no secret away; the key lost, they are lost. What is sealed belongs to one place (its column and row): who
 * may write to the database cannot have a secret of one account used for another. Several keys: the first seals, all of them open.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomBytes,
  type KeyObject,
} from 'node:crypto'
import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import path from 'node:path'

const cipher = 'aes-256-gcm'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16
const version = 'v2.'
/** Of before: bound to no place, and it does not say by which key. */
const formerVersion = 'v1.'
const minSecretLength = 32

export type SecretBox = {
  /**
   * `v2.`, which key, and base64url of nonce, ciphertext and tag. The same text gives another result every time. `place`: see secretPlace.
   */
  seal(text: string, place: string): string
  /** Throws when the text was altered, sealed with another key, or for another place. */
  open(sealed: string, place: string): string
}

export type RotatingSecretBox = SecretBox & {
  /** What is sealed now begins with this; what begins with anything else was sealed with a former key, or in the way of before. */
  readonly currentPrefix: string
}

/** Where a secret rests: the column with its table, and the ids of the row, the account's first. Additional data of the cipher. */
export const secretPlace = (column: string, ...ids: readonly string[]): string => [column, ...ids].join(' ')

/** A KeyObject and not its bytes: with bytes node makes one for every call, which costs five times the encryption. */
export function createSecretBox(key: KeyObject, former: readonly KeyObject[] = []): RotatingSecretBox {
  const prefixOf = (one: KeyObject) => `${version}${fingerprintOf(one)}.`
  const byPrefix = new Map([...former, key].map((one) => [prefixOf(one), one]))
  const currentPrefix = prefixOf(key)
  return {
    currentPrefix,
    seal: (text, place) => currentPrefix + seal(key, text, place),
    open(sealed, place) {
      if (sealed.startsWith(formerVersion)) return openFormer([key, ...former], sealed.slice(formerVersion.length))
      const prefix = /^v2\.[\w-]+\./.exec(sealed)?.[0]
      if (prefix === undefined) throw new Error('this is no sealed secret')
      return unseal(byPrefix.get(prefix) ?? null, sealed.slice(prefix.length), place)
    },
  }
}

/** Null for what does not open: altered, made up, sealed with a lost key or for another place. */
export function openedOrNull(box: SecretBox, sealed: string, place: string): string | null {
  try {
    return box.open(sealed, place)
  } catch {
    return null
  }
}

/** One of these keys, if any, and it is not said which. */
function openFormer(keys: readonly KeyObject[], sealed: string): string {
  const failures: unknown[] = []
  for (const key of keys)
    try {
      return unseal(key, sealed, null)
    } catch (error) {
      failures.push(error)
    }
  throw failures[0]
}

/** Tells keys apart, and nothing of them. */
const fingerprintOf = (key: KeyObject): string =>
  createHmac('sha256', key).update('which key').digest('base64url').slice(0, 8)

/** Keys for different purposes never tell about each other (RFC 5869). */
export function subkey(key: KeyObject, purpose: 'secrets' | 'recording-urls'): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', key, '', `parley ${purpose}`, keyBytes)))
}

type Keys = readonly [KeyObject, ...KeyObject[]]

export function subkeys([key, ...former]: Keys, purpose: Parameters<typeof subkey>[1]): [KeyObject, ...KeyObject[]] {
  return [subkey(key, purpose), ...former.map((one) => subkey(one, purpose))]
}

/** Of the keys of loadAppKeys. */
export function boxOf(appKeys: Keys): RotatingSecretBox {
  const [key, ...former] = subkeys(appKeys, 'secrets')
  return createSecretBox(key, former)
}

/** How what is sealed by each of them begins: tells keys apart, and nothing of them. */
export const sealedPrefixesOf = (appKeys: Keys): string[] => appKeys.map((key) => boxOf([key]).currentPrefix)

export type AppKeyOptions = { readonly appSecret: string | null; readonly dataDir: string }

/** The one that seals and signs. Every process with the same APP_SECRET, or on the same data folder, gets the same key. */
export async function loadAppKey({ appSecret, dataDir }: AppKeyOptions): Promise<KeyObject> {
  if (appSecret === null) return readKeyFile(await ensureKeyFile(dataDir))
  if (appSecret.length < minSecretLength) throw new Error(`APP_SECRET must have at least ${minSecretLength} characters`)
  const [first = ''] = secretsIn(appSecret)
  return keyOf(first)
}

/**
 * That one, then those of before, by which is still opened: APP_SECRET may be several with commas between, the newest first, and the key that
 * was made in the data folder before there was an APP_SECRET is one of before.
 */
export async function loadAppKeys(options: AppKeyOptions): Promise<[KeyObject, ...KeyObject[]]> {
  const key = await loadAppKey(options)
  if (options.appSecret === null) return [key]
  const [, ...former] = secretsIn(options.appSecret)
  const made = keyFileIn(options.dataDir)
  const wasMade = (await readFile(made).catch(absent)) !== null
  return [key, ...former.map(keyOf), ...(wasMade ? [await readKeyFile(made)] : [])]
}

const keyOf = (secret: string): KeyObject => createSecretKey(createHash('sha256').update(secret).digest())

/** One secret may have commas of its own: as a whole it is one of before, unless its parts are too short to be secrets. */
function secretsIn(appSecret: string): string[] {
  const parts = appSecret.split(',').map((part) => part.trim())
  const areSecrets = parts.length > 1 && parts.every((part) => part.length >= minSecretLength)
  return areSecrets ? [...parts, appSecret] : [appSecret]
}

function seal(key: KeyObject, text: string, place: string): string {
  const nonce = randomBytes(nonceBytes)
  const encrypting = createCipheriv(cipher, key, nonce).setAAD(Buffer.from(place))
  const parts = [nonce, encrypting.update(text, 'utf8'), encrypting.final(), encrypting.getAuthTag()]
  return Buffer.concat(parts).toString('base64url')
}

/** Null for a place: it was bound to none. */
function unseal(key: KeyObject | null, sealed: string, place: string | null): string {
  if (key === null) throw new Error('a secret does not open: it was sealed with another key')
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length < nonceBytes + tagBytes) throw new Error('this is no sealed secret')
  const decrypting = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
  decrypting.setAuthTag(bytes.subarray(-tagBytes))
  if (place !== null) decrypting.setAAD(Buffer.from(place))
  try {
    return decrypting.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decrypting.final('utf8')
  } catch (error) {
    throw new Error('a secret does not open: it was altered, or sealed with another key or for another place', {
      cause: error,
    })
  }
}

export const keyFileIn = (dataDir: string): string => path.join(dataDir, 'app.key')

/**
 * Whole or not there: written beside, then linked to its name, which fails when another process was faster. A key that exists is
 * never replaced.
 */
async function ensureKeyFile(dataDir: string): Promise<string> {
  const file = keyFileIn(dataDir)
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  if ((await readFile(file).catch(absent)) !== null) return file
  const draft = `${file}.${randomBytes(8).toString('hex')}`
  try {
    await writeDurably(draft, `${randomBytes(keyBytes).toString('hex')}\n`)
    await link(draft, file).catch(ignoreExisting)
  } finally {
    await rm(draft, { force: true })
  }
  return file
}

async function readKeyFile(file: string): Promise<KeyObject> {
  const hex = (await readFile(file, 'utf8')).trim()
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new Error(`${file} holds no key; restore it, secrets in the database need it`)
  return createSecretKey(Buffer.from(hex, 'hex'))
}

async function writeDurably(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}
