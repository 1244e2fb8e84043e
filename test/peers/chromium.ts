/** Owns a headless Chromium with a fake microphone, for tests that need a real browser. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { chromium, type BrowserContext } from 'playwright-core'
import type { BrowserOptions } from './browser-page.ts'
import { hasProgram } from './peer-program.ts'

export const chromiumPath = '/usr/bin/chromium'

const flags = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--use-fake-ui-for-media-stream',
  '--use-fake-device-for-media-stream',
  '--autoplay-policy=no-user-gesture-required',
]

/** See `hasProgram`. */
export const hasChromium = (): boolean => hasProgram(chromiumPath)

export type OpenBrowser = {
  readonly context: BrowserContext
  /** Closes the browser and removes its folder. */
  close(): Promise<void>
}

export async function openChromium(options: BrowserOptions = {}): Promise<OpenBrowser> {
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-chromium-'))
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: chromiumPath,
    headless: true,
    chromiumSandbox: false,
    args: options.speech ? [...flags, `--use-file-for-fake-audio-capture=${options.speech}%noloop`] : flags,
    permissions: ['microphone'],
    timeout: 60_000,
  })
  return {
    context,
    async close() {
      await context.close()
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
