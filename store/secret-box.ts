/**
 * Owns how secrets rest in the database (AES-256-GCM) and the one key behind it: from APP_SECRET, or from a file made once in the
 * data folder. A copy of the database alone gives no secret away; the key lost, they are lost.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHash,
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
const version = 'v1.'
const minSecretLength = 32

export type SecretBox = {
  /** `v1.` and base64url of nonce, ciphertext and tag. The same text gives another result every time. */
  seal(text: string): string
  /** Throws when the text was altered, or sealed with another key. */
  open(sealed: string): string
}

/** A KeyObject and not its bytes: with bytes node makes one for every call, which costs five times the encryption. */
export function createSecretBox(key: KeyObject): SecretBox {
  return { seal: (text) => seal(key, text), open: (sealed) => unseal(key, sealed) }
}

/** Keys for different purposes never tell about each other (RFC 5869). */
export function subkey(key: KeyObject, purpose: 'secrets' | 'recording-urls'): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', key, '', `parley ${purpose}`, keyBytes)))
}

export type AppKeyOptions = { readonly appSecret: string | null; readonly dataDir: string }

/** Every process with the same APP_SECRET, or on the same data folder, gets the same key. */
export async function loadAppKey({ appSecret, dataDir }: AppKeyOptions): Promise<KeyObject> {
  if (appSecret === null) return readKeyFile(await ensureKeyFile(dataDir))
  if (appSecret.length < minSecretLength) throw new Error(`APP_SECRET must have at least ${minSecretLength} characters`)
  return createSecretKey(createHash('sha256').update(appSecret).digest())
}

function seal(key: KeyObject, text: string): string {
  const nonce = randomBytes(nonceBytes)
  const encrypting = createCipheriv(cipher, key, nonce)
  const parts = [nonce, encrypting.update(text, 'utf8'), encrypting.final(), encrypting.getAuthTag()]
  return version + Buffer.concat(parts).toString('base64url')
}

function unseal(key: KeyObject, sealed: string): string {
  const bytes = Buffer.from(sealed.slice(version.length), 'base64url')
  if (!sealed.startsWith(version) || bytes.length < nonceBytes + tagBytes) throw new Error('this is no sealed secret')
  const decrypting = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
  decrypting.setAuthTag(bytes.subarray(-tagBytes))
  try {
    return decrypting.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decrypting.final('utf8')
  } catch (error) {
    throw new Error('a secret does not open: it was altered, or sealed with another key', { cause: error })
  }
}

/**
 * Whole or not there: written beside, then linked to its name, which fails when another process was faster. A key that exists is
 * never replaced.
 */
async function ensureKeyFile(dataDir: string): Promise<string> {
  const file = path.join(dataDir, 'app.key')
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
