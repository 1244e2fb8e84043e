/**
 * Owns how a trunk writes telephone numbers: E.164 with its plus sign, without it, or as they are dialed within a country. E.164 in, the
 * trunk's form out, and back. ITU-T E.164, E.123.
 */
import { z } from 'zod'
import { PhoneNumber } from './phone-number.ts'

export const NumberForm = z.enum(['plus', 'digits', 'national'])
export type NumberForm = z.infer<typeof NumberForm>

export const NumberFormat = z.strictObject({
  /** Of the number that is dialed: Request-URI, To, and Refer-To of a transfer. Absent: `plus`. */
  called: NumberForm.optional(),
  /** Of the number that calls: From and the identity headers. Absent: `plus`. */
  calling: NumberForm.optional(),
  /** Of the country whose numbers are national ones, without plus. */
  countryCode: z
    .string()
    .regex(/^[1-9]\d{0,2}$/, 'must be one to three digits, like 49')
    .optional(),
  /** In front of a national number; absent: `0`, as in most of the world. Empty in North America. */
  nationalPrefix: z
    .string()
    .regex(/^\d{0,4}$/, 'must be at most four digits')
    .optional(),
  /** In front of a foreign number; absent: `00`. */
  internationalPrefix: z
    .string()
    .regex(/^\d{0,6}$/, 'must be at most six digits')
    .optional(),
})
export type NumberFormat = z.infer<typeof NumberFormat>

/** `number` is E.164; what is none stays as it is. */
export function writeNumber(number: string, form: NumberForm | undefined, format: NumberFormat = {}): string {
  if (!number.startsWith('+')) return number
  const digits = number.slice(1)
  switch (form ?? 'plus') {
    case 'plus':
      return number
    case 'digits':
      return digits
    case 'national':
      return nationally(digits, format)
  }
}

function nationally(digits: string, { countryCode, nationalPrefix = '0', internationalPrefix = '00' }: NumberFormat) {
  const isOwn = countryCode !== undefined && digits.startsWith(countryCode)
  return isOwn ? `${nationalPrefix}${digits.slice(countryCode.length)}` : `${internationalPrefix}${digits}`
}

/** What a bare number of so many digits begins with its country code. */
const internationalFrom = 11

/**
 * E.164 of a number that the trunk's network wrote as within its country. Null: the trunk names no country, or it is no national number.
 * Without a national prefix a number that begins with the country's code and is long enough is taken for an international one.
 */
export function readNational(text: string, { countryCode, nationalPrefix = '0' }: NumberFormat = {}): string | null {
  const digits = text.replace(/[-.() ]/g, '')
  if (countryCode === undefined || !/^\d+$/.test(digits) || !digits.startsWith(nationalPrefix)) return null
  if (digits.startsWith('00')) return null
  if (nationalPrefix === '' && digits.startsWith(countryCode) && digits.length >= internationalFrom) return null
  return PhoneNumber.safeParse(`+${countryCode}${digits.slice(nationalPrefix.length)}`).data ?? null
}
