/** Owns the judge of whether a page can be used by keyboard alone: whatever can be pressed or filled in is reached by Tab, and shows that it has the focus. */
import type { Page } from 'playwright-core'

/** What is there to be reached, and what is reached from now on. */
const watch = `(() => {
  const all = document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')
  const wanted = [...all].filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0 && one.type !== 'radio')
  const [reached, unseen] = [new Set(), new Set()]
  const hasOutline = (one) => getComputedStyle(one).outlineStyle !== 'none'
  document.addEventListener('focusin', ({ target }) => {
    reached.add(target)
    if (!hasOutline(target) && !hasOutline(target.parentElement)) unseen.add(target)
  })
  const nameOf = (one) => one.outerHTML.slice(0, 160)
  globalThis.keyboard = {
    isDone: () => wanted.every((one) => reached.has(one) || !one.isConnected),
    findings: () => [
      ...wanted.filter((one) => !reached.has(one) && one.isConnected).map((one) => 'not reached: ' + nameOf(one)),
      ...[...unseen].map((one) => 'shows no focus: ' + nameOf(one)),
    ],
  }
  document.activeElement?.blur()
  return wanted.length
})()`

/** The page was not used before. */
export async function keyboardFindings(page: Page): Promise<string[]> {
  const count = (await page.evaluate(watch)) as number
  // What scrolls is reached as well, in Chromium.
  const most = 2 * count + 20
  for (let pressed = 0; pressed < most; pressed++) {
    await page.keyboard.press('Tab')
    if (pressed >= count && (await page.evaluate('keyboard.isDone()'))) break
  }
  return (await page.evaluate('keyboard.findings()')) as string[]
}
