/** Owns the one error of a document that can never be read: what is wrong with it, for whoever sent it. */
import type { DocumentFailure } from '../../model/document.ts'

export class Unreadable extends Error {
  override readonly name = 'Unreadable'
  readonly reason: DocumentFailure
  constructor(reason: DocumentFailure, cause?: unknown) {
    super(`the document cannot be read: ${reason}`, { cause })
    this.reason = reason
  }
}
