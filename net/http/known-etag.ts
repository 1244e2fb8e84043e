/** Owns whether a client has what it asks for. */

/** `asked`: its If-None-Match. RFC 9110 section 13.1.2: any of a list, weak ones (a proxy that compresses makes them) too. */
export const knowsEtag = (asked: string | null, etag: string): boolean =>
  asked !== null && asked.split(',').some((one) => one.trim().replace(/^W\//, '') === etag || one.trim() === '*')
