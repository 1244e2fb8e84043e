/** Owns telephone numbers as they are asked for: E.164 with its plus sign. */
import { z } from 'zod'

export const PhoneNumber = z.string().regex(/^\+[1-9]\d{6,14}$/, 'must be a number in E.164 format, like +4930123456')
