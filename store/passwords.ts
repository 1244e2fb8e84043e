/**
 * Owns how passwords rest: as scrypt of node:crypto, with its parameters beside the result, so that they can be raised: who signs in with an
 * older hash gets a new one. One is computed at a time and few wait, because each takes 32 MiB, a core and one of the threads that recordings
 * are written by. Nobody learns by the time whether there is such a user: without one as much is computed.
 */
import { randomBytes, randomInt, scrypt, timingSafeEqual } from 'node:crypto'
import { Problem } from '../model/problem.ts'

/** `N` is 2 to the power of `logN`. RFC 7914. */
export type ScryptCost = { readonly logN: number; readonly r: number; readonly p: number }

/** The OWASP Password Storage Cheat Sheet has five of equal strength; this one takes 32 MiB. */
export const passwordCost: ScryptCost = { logN: 15, r: 8, p: 3 }

export type Passwords = {
  /** Throws Problem SERVICE_UNAVAILABLE while too many wait, as `verify` does. */
  hash(password: string): Promise<string>
  /** `stored`: null of a user whom there is not. `isOutdated`: its parameters are not those of now. */
  verify(password: string, stored: string | null): Promise<{ readonly matches: boolean; readonly isOutdated: boolean }>
}

const saltBytes = 16
const hashBytes = 32
const maxWaiting = 16
/** What a row may ask us to compute. */
const most: ScryptCost = { logN: 20, r: 32, p: 16 }

export function createPasswords(cost: ScryptCost = passwordCost): Passwords {
  const inTurn = createTurns(maxWaiting)
  const nobody: Stored = { cost, salt: randomBytes(saltBytes), hash: randomBytes(hashBytes) }
  const derive = (password: string, salt: Buffer, by: ScryptCost): Promise<Buffer> =>
    inTurn(() => compute(password, salt, by))
  return {
    async hash(password) {
      const salt = randomBytes(saltBytes)
      return write({ cost, salt, hash: await derive(password, salt, cost) })
    },
    async verify(password, stored) {
      const known = stored === null ? null : read(stored)
      const { cost: by, salt, hash } = known ?? nobody
      const isEqual = timingSafeEqual(await derive(password, salt, by), hash)
      return { matches: isEqual && known !== null, isOutdated: parameters.some((name) => by[name] !== cost[name]) }
    },
  }
}

const parameters = ['logN', 'r', 'p'] as const

type Stored = { readonly cost: ScryptCost; readonly salt: Buffer; readonly hash: Buffer }

const shape = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([\w+/]{22})\$([\w+/]{43})$/

/** As the Password Hashing Competition's string format has it, base64 without padding. */
const write = ({ cost: { logN, r, p }, salt, hash }: Stored): string =>
  `$scrypt$ln=${logN},r=${r},p=${p}$${withoutPadding(salt)}$${withoutPadding(hash)}`

const withoutPadding = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')

function read(stored: string): Stored | null {
  const [, logN, r, p, salt, hash] = shape.exec(stored) ?? []
  if (salt === undefined || hash === undefined) return null
  const cost = { logN: Number(logN), r: Number(r), p: Number(p) }
  const isOurs = parameters.every((name) => cost[name] >= 1 && cost[name] <= most[name])
  return isOurs ? { cost, salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') } : null
}

function compute(password: string, salt: Buffer, { logN, r, p }: ScryptCost): Promise<Buffer> {
  const N = 2 ** logN
  const done = Promise.withResolvers<Buffer>()
  // 128·N·r bytes, and a little for each of p.
  const options = { N, r, p, maxmem: 128 * r * (N + p) + 1024 * 1024 }
  scrypt(Buffer.from(password, 'utf8'), salt, hashBytes, options, (error, key) =>
    error ? done.reject(error) : done.resolve(key),
  )
  return done.promise
}

/** One at a time, in order of their coming. */
function createTurns(places: number) {
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  return async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (waiting > places) throw tooBusy()
    waiting += 1
    const mine = last.then(work)
    last = mine.catch(() => undefined)
    try {
      return await mine
    } finally {
      waiting -= 1
    }
  }
}

const tooBusy = (): Problem =>
  new Problem('SERVICE_UNAVAILABLE', 'Too many people sign in at this moment. Try again soon.', null, {
    retryAfterSeconds: 5,
  })

/** Without those that look alike. */
const letters = 'abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789'

/** 115 bits, in groups that can be read out: for who is told it once. */
export function createPassword(): string {
  const group = () => Array.from({ length: 5 }, () => letters.charAt(randomInt(letters.length))).join('')
  return Array.from({ length: 4 }, group).join('-')
}
