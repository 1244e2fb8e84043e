/** Owns what tests ask of a page, whichever browser it is in. */
export type BrowserPage = {
  goto(url: string): Promise<void>
  /** The value of an expression in the page, a promise's when it has settled; it must survive JSON. Rejects with what the page throws. */
  evaluate<Value>(expression: string): Promise<Value>
  /** Ends the browser and removes its folder. */
  close(): Promise<void>
}
