/** Owns the browsers that tests call from, each with one page and a fake microphone that beeps. */
import type { BrowserPage } from './browser-page.ts'
import { chromiumPath, hasChromium, openChromium } from './chromium.ts'
import { firefoxPath, openFirefox } from './firefox.ts'
import { hasProgram } from './peer-program.ts'

export type Browser = {
  readonly name: string
  /** Why tests leave it out. */
  readonly skip: string | false
  open(): Promise<BrowserPage>
}

export const browsers = (): readonly [chromium: Browser, firefox: Browser] => [
  { name: 'Chromium', skip: hasChromium() ? false : `no ${chromiumPath}`, open: openChromiumPage },
  { name: 'Firefox', skip: hasProgram(firefoxPath) ? false : `no ${firefoxPath}`, open: openFirefox },
]

async function openChromiumPage(): Promise<BrowserPage> {
  const { context, close } = await openChromium()
  const page = await context.newPage()
  return {
    goto: async (url) => void (await page.goto(url)),
    evaluate: (expression) => page.evaluate(expression),
    close,
  }
}
