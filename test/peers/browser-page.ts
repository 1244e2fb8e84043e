/** Owns what tests ask of a page, whichever browser it is in. */
export type BrowserPage = {
  goto(url: string): Promise<void>
  /** The value of an expression in the page, a promise's when it has settled; it must survive JSON. Rejects with what the page throws. */
  evaluate<Value>(expression: string): Promise<Value>
  /** Runs in every page that is opened from here on, before its own scripts. */
  preload(script: string): Promise<void>
  /** Errors that the browser showed on its console. */
  complaints(): readonly string[]
  /** Where a picture can be taken. */
  screenshot?(file: string): Promise<void>
  /** As a person closes a tab: the page is asked nothing. */
  closeTab(): Promise<void>
  /** Ends the browser and removes its folder. */
  close(): Promise<void>
}

export type BrowserOptions = {
  /** A WAV file for the microphone, played once from the moment it is opened; without it the microphone beeps. */
  readonly speech?: string
}
