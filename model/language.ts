/** Owns language tags. BCP 47. */
import { z } from 'zod'

/** Well-formed (RFC 5646 section 2.1): language, script, region, variants, extensions, private use. */
export const Language = z
  .string()
  .max(35)
  .regex(
    /^[A-Za-z]{2,3}(-[A-Za-z]{3}){0,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|\d{3}))?(-([A-Za-z0-9]{5,8}|\d[A-Za-z0-9]{3}))*(-[0-9A-WY-Za-wy-z](-[A-Za-z0-9]{2,8})+)*(-[Xx](-[A-Za-z0-9]{1,8})+)?$/,
    'must be a BCP 47 language tag',
  )
