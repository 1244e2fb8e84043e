/** Owns whether a client has what it asks for, or what it goes on with. */

/** `asked`: its If-None-Match. RFC 9110 section 13.1.2: any of a list, weak ones (a proxy that compresses makes them) too. */
export const knowsEtag = (asked: string | null, etag: string): boolean =>
  asked !== null && asked.split(',').some((one) => one.trim().replace(/^W\//, '') === etag || one.trim() === '*')

/** `wanted`: its If-Match. RFC 9110 section 13.1.1: any of a list, and no weak one is it. Without one any is right. */
export const isWantedEtag = (wanted: string | null, etag: string): boolean =>
  wanted === null || wanted.split(',').some((one) => one.trim() === etag || one.trim() === '*')
