/** Owns what a call keeps of the request that placed it, for those whom it asks and tells later. */
export type AskedBy = {
  /** Of the request and of its answer: `x-request-id`. */
  readonly requestId: string
  /** The traceparent of who asks; null: nobody traces. */
  readonly trace: string | null
}
