/** Owns the browsers that tests call from, each with one page and a fake microphone. */
import type { BrowserOptions, BrowserPage } from './browser-page.ts'
import { chromiumPath, hasChromium, openChromium } from './chromium.ts'
import { firefoxPath, openFirefox } from './firefox.ts'
import { hasProgram } from './peer-program.ts'

export type Browser = {
  readonly name: string
  /** Why tests leave it out. */
  readonly skip: string | false
  open(options?: BrowserOptions): Promise<BrowserPage>
}

export const browsers = (): readonly [chromium: Browser, firefox: Browser] => [
  { name: 'Chromium', skip: hasChromium() ? false : `no ${chromiumPath}`, open: openChromiumPage },
  { name: 'Firefox', skip: hasProgram(firefoxPath) ? false : `no ${firefoxPath}`, open: openFirefox },
]

async function openChromiumPage(options?: BrowserOptions): Promise<BrowserPage> {
  const { context, close } = await openChromium(options)
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(error.message))
  return {
    goto: async (url) => void (await page.goto(url)),
    evaluate: (expression) => page.evaluate(expression),
    preload: async (script) => void (await page.addInitScript(script)),
    complaints: () => complaints,
    screenshot: async (file) => void (await page.screenshot({ path: file })),
    closeTab: () => page.close({ runBeforeUnload: false }),
    close,
  }
}
