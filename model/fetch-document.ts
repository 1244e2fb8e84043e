/** Owns the port by which a document is fetched from an address that somebody else chose: guarded as webhooks are, bounded, its failure a value. */

export type FetchDocument = (asked: {
  readonly url: string
  /** Ms over name resolution, connecting, sending and the whole answer. */
  readonly within: number
  readonly maxBytes: number
}) => Promise<FetchedDocument>

export type FetchedDocument =
  | {
      /** Redirects are not followed: they are answers like any other. */
      readonly kind: 'answered'
      readonly status: number
      readonly headers: Readonly<Record<string, string>>
      readonly body: string
    }
  | { readonly kind: 'failed'; readonly details: string }
