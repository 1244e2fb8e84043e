/** Owns the tokens that are made here: what is shown once, of which only the SHA-256 is stored. */
import { hash, randomBytes } from 'node:crypto'

/** 32 random bytes in base64url. */
export const createToken = (): string => randomBytes(32).toString('base64url')

/** What is anything else costs no question to the database. */
export const isToken = (text: string): boolean => /^[\w-]{43}$/.test(text)

/** A plain hash is enough, because tokens are 256 random bits and cannot be guessed. */
export const hashOfToken = (token: string): Buffer => hash('sha256', token, 'buffer')
