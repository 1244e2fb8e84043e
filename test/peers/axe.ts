/** Owns the judge of whether everybody can use a page (WCAG 2.2 A and AA), as far as a program can tell. */
import axe from 'axe-core'
import type { Page } from 'playwright-core'

type Found = {
  readonly id: string
  readonly impact: string | null
  readonly nodes: readonly { readonly html: string }[]
}

const allRules = { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }

/** What it finds serious or worse, each with the first places. */
export async function seriousFindings(page: Page, only: 'all' | 'colours' = 'all'): Promise<string[]> {
  await page.evaluate(axe.source)
  const rules = only === 'all' ? allRules : { runOnly: ['color-contrast'] }
  const found = (await page.evaluate(
    `axe.run(document, ${JSON.stringify(rules)}).then(({ violations }) => violations)`,
  )) as Found[]
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .slice(0, 3)
          .map(({ html }) => html.slice(0, 200))
          .join(' | ')}`,
    )
}
