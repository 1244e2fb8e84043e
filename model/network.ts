/** Owns the form of IP networks in what is configured: an address, or an address and the length of its prefix (RFC 4632, RFC 4291 section 2.3). */
import { z } from 'zod'

/** By itself `cidrv6` takes a prefix that is no whole number. */
const formats = [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6().regex(/\/\d+$/)]

/** What it holds is said in net/networks.ts, which takes exactly the same texts. */
export const Network = z
  .string()
  .refine(
    (text) => formats.some((format) => format.safeParse(text).success),
    'must be an IP address or a network like 203.0.113.0/24',
  )
