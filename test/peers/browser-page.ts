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

/** What a policy kept from a page is an error on its console, in every browser. */
export const tellPolicy =
  "document.addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.effectiveDirective} ${event.blockedURI}`))"

/** Without what browsers say of a call that has no sound or no diagnostics; what a policy kept away stays, whatever it was. */
export const complaintsOf = (page: Pick<BrowserPage, 'complaints'>): string[] =>
  page.complaints().filter((complaint) => complaint.startsWith('policy:') || !/404|diagnostics|audio/.test(complaint))

/** Looks until the expression is true in the page. Rejects after a minute, with what the page shows. */
export const sees = (page: BrowserPage, what: string): Promise<void> =>
  page.evaluate(`(async () => {
    for (let tries = 0; tries < 600; tries += 1) {
      if (${what}) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    throw new Error('waited in vain for ' + ${JSON.stringify(what)} + ': ' + document.body.innerText)
  })()`)

/** Looks until another page has taken the place of this one. */
export async function arrives(page: BrowserPage, path: string): Promise<void> {
  const isThere = `location.pathname === ${JSON.stringify(path)} || new Promise((resolve) => setTimeout(resolve, 100, false))`
  for (let tries = 0; tries < 300; tries += 1) {
    // A page that is on its way out answers nothing.
    if (await page.evaluate(isThere).catch(() => false)) return
  }
  throw new Error(`the page did not come to ${path}`)
}
