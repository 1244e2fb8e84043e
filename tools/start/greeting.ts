/** Owns what stands at the end of a start: where to call, sign in and ask. One paragraph each, in the order of `greetingOf`. */
import type { Parley } from '../../app/parley.ts'
import { demoEmail, demoNumbers, type SeededDemo } from './demo/seed-demo.ts'

/** A title, and the lines below it. */
export type Paragraph = { readonly title: string; readonly lines: readonly string[] }

export type Greeted = {
  readonly service: Pick<Parley, 'url' | 'sip'>
  readonly demo: SeededDemo & { readonly token: string }
}

/** Whoever has something to show at the first minute adds a paragraph here; null: there is nothing to show. */
export const greetingOf = (greeted: Greeted): readonly Paragraph[] =>
  [firstKey(greeted), firstUser(greeted), browserAddress(greeted), telephoneAddress(greeted), question(greeted)].filter(
    (paragraph) => paragraph !== null,
  )

export const textOf = ({ title, lines }: Paragraph): string =>
  `\n${title}\n${lines.map((line) => `  ${line}`).join('\n')}`

const firstKey = ({ demo }: Greeted): Paragraph | null =>
  demo.apiKey === null ? null : { title: 'The key of the demo account, shown this once:', lines: [demo.apiKey] }

const firstUser = ({ service, demo }: Greeted): Paragraph | null =>
  demo.password === null
    ? null
    : {
        title: `Its user, who signs in at ${service.url}/sign-in; the password is shown this once:`,
        lines: [demoEmail, demo.password],
      }

const browserAddress = ({ service, demo }: Greeted): Paragraph => ({
  title: 'Call it from a browser:',
  lines: [`${service.url}/?token=${demo.token}`],
})

const telephoneAddress = ({ service: { sip } }: Greeted): Paragraph | null =>
  sip && {
    title: 'Or by telephone (docs/phones.md):',
    lines: [`sip:${demoNumbers.inbound}@${sip.address}:${sip.port}`],
  }

const question = ({ service, demo }: Greeted): Paragraph => ({
  title: `Or ask the API (${service.url}/docs shows all of it):`,
  lines: [`curl -H 'x-api-key: ${demo.apiKey ?? '<your key>'}' ${service.url}/v1/accounts/current`],
})
