/** Owns IP networks as text: an address, or an address and the length of its prefix (RFC 4632, RFC 4291 section 2.3). */
import { z } from 'zod'

const formats = [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]

export const isNetwork = (text: string): boolean => formats.some((format) => format.safeParse(text).success)
