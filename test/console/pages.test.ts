/**
 * Each page of the console in light, dark and on a telephone: everybody can use it, nothing is wider than the screen, the policy keeps nothing away.
 * With CONSOLE_PICTURES=<folder> the pictures stay there; docs/console.md shows some of them.
 */
import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'tap'
import { seriousFindings } from '../peers/axe.ts'
import { hasChromium } from '../peers/chromium.ts'
import { openBrowsers, openConsole, type Signed } from '../scenes/console.ts'
import { seedPages, type ShownPage } from '../scenes/console-pages.ts'

const skip = hasChromium() ? false : 'no Chromium'
const folder = process.env['CONSOLE_PICTURES']

const looks = [
  { name: 'light', dark: false, phone: false, judged: 'all' },
  { name: 'dark', dark: true, phone: false, judged: 'colours' },
  { name: 'phone', dark: false, phone: true, judged: null },
] as const

test('each page of the console', { skip }, async (t) => {
  const scene = await openConsole(t)
  await scene.addUser('olive@example.com', 'owner')
  const pages = await seedPages(scene)
  const signIn = await openBrowsers(t, scene)
  if (folder !== undefined) await mkdir(folder, { recursive: true })
  for (const look of looks) {
    const signed = await signIn('olive@example.com', look)
    for (const shown of pages)
      await t.test(`${shown.name}, ${look.name}`, async (t) => {
        await show(signed, scene.url + shown.path, shown.ready)
        if (look.judged !== null) t.same(await seriousFindings(signed.page, look.judged), [], 'everybody can use it')
        const [wide, room] = (await signed.page.evaluate('[document.documentElement.scrollWidth, innerWidth]')) as [
          number,
          number,
        ]
        t.ok(wide <= room, `${wide} of ${room} pixels`)
        if (folder !== undefined) await keepPicture(signed, path.join(folder, `${shown.name}-${look.name}.png`), shown)
      })
    t.same(signed.complaints, [], `in ${look.name} the browser complains of nothing`)
    await signed.page.context().close()
  }
  await rm(path.join(scene.database.dataDir, 'recordings'), { recursive: true, force: true })
})

async function show({ page }: Signed, address: string, ready: string): Promise<void> {
  await page.goto(address)
  await page.getByText(ready).first().waitFor({ timeout: 15_000 })
}

/** What is out of sight is not drawn, so the whole of a page is taken with a window as high as it is. */
async function keepPicture({ page }: Signed, file: string, { isWhole = false }: ShownPage): Promise<void> {
  const before = page.viewportSize()
  if (isWhole && before) {
    const height = (await page.evaluate('document.documentElement.scrollHeight')) as number
    await page.setViewportSize({ ...before, height })
  }
  await page.screenshot({ path: file, fullPage: isWhole })
  if (before) await page.setViewportSize(before)
}
