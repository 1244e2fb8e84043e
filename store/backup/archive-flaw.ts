/** Owns what is said of an archive that cannot be used: cut, damaged, of a newer version, or none at all. */

/** `message` tells what is wrong with it, in words for an operator. */
export class ArchiveFlaw extends Error {
  override readonly name = 'ArchiveFlaw'
}
