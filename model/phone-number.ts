/** Owns telephone numbers as they are asked for: E.164 with its plus sign, or text that is read as one. */
import { z } from 'zod'

export const PhoneNumber = z.string().regex(/^\+[1-9]\d{6,14}$/, 'must be a number in E.164 format, like +4930123456')

/** As people write one: with its country code, or as it is dialed within their country. What it reads as says net/read-number.ts. */
export const WrittenNumber = z
  .string()
  .max(64)
  .regex(/^[\d+(][\d ()./-]+$/, 'must be a telephone number, like +4930123456 or 030 123456')
