/**
 * What a reader is sent to exists: each page that a comment or another page cites, with the heading that is named, each file that a page names,
 * each picture. A comment cites a page by its path, and by a heading in quotes where the page has many. The rules are one pure function over
 * paths and texts, so that they prove themselves on bad examples before they are believed about the repository.
 */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'tap'
import { commentsOf } from './masked-source.ts'

/** By path; null for what is no text. */
type Files = ReadonlyMap<string, string | null>
type Page = { readonly file: string; readonly text: string }

const maxReadmeLines = 150
/** Pages that are cited by heading, because nobody reads all of them for one sentence. */
const citedByHeading = /^docs\/(?:contract\/|design\/|decisions\.md)/
/** It was applied, and a migration is known by its bytes: what it cites stays as it was. */
const unchangeable = 'store/migrations/0003_rest_api.sql'
const codeFile = /\.(?:[cm]?[jt]s|sql|css|html|xml)$/

function complaintsOf(files: Files): string[] {
  const texts = [...files].flatMap(([file, text]) => (text === null ? [] : [{ file, text }]))
  const pages = texts.filter(({ file }) => file.endsWith('.md'))
  return [
    ...texts
      .filter(({ file }) => codeFile.test(file) && file !== unchangeable)
      .flatMap((code) => citationComplaints(code, files)),
    ...pages.flatMap((page) => linkComplaints(page, files)),
    ...pages.flatMap((page) => nameComplaints(page, files)),
    ...orphanComplaints(pages),
    ...readmeComplaints(files.get('README.md') ?? ''),
    ...settingComplaints(files),
    ...dependencyComplaints(files),
  ].toSorted()
}

/** `docs/design/sip.md "Session timers" and "Digest"`, across the lines of a comment. */
const citation = /(?<![\w./-])((?:[\w-]+\/)*[\w-]+\.md)((?:,?\s(?:and\s)?"[^"\n]+")*)/g

function citationComplaints({ file, text }: Page, files: Files): string[] {
  const comments = joinedLines(commentTextOf(file, text))
  const cited = [...comments.matchAll(citation)].flatMap(([, page = '', headings = '']) =>
    citedComplaints(
      files,
      page,
      [...headings.matchAll(/"([^"]+)"/g)].map(([, heading = '']) => heading),
    ),
  )
  const named = [...text.matchAll(/(?<![\w./-])docs\/[\w/-]+\.md/g)].flatMap(([page]) =>
    files.has(page) ? [] : [`${page} does not exist`],
  )
  const vague = /\bthe specification\b/i.test(comments) ? ['"the specification" is no page: cite docs/contract/'] : []
  return [...new Set([...cited, ...named, ...vague])].map((complaint) => `${file}: ${complaint}`)
}

function citedComplaints(files: Files, page: string, headings: readonly string[]): string[] {
  const text = files.get(page)
  if (typeof text !== 'string') return [`${page} does not exist`]
  if (headings.length === 0 && citedByHeading.test(page)) return [`${page} is cited by a heading in quotes`]
  const known = headingsOf(text)
  return headings.filter((heading) => !known.includes(heading)).map((heading) => `${page} has no heading "${heading}"`)
}

function commentTextOf(file: string, text: string): string {
  if (/\.[cm]?[jt]s$/.test(file)) return commentsOf(text)
  return file.endsWith('.sql') ? [...text.matchAll(/--.*/g)].join('\n') : text
}

/** One line, without what begins the lines of a comment. */
const joinedLines = (comments: string): string => comments.replace(/\s*\n\s*(?:\*(?!\/)|\/\/|--)?\s*/g, ' ')

const withoutFences = (text: string): string => text.replace(/^```[^\n]*\n[\s\S]*?^```/gm, '')

const headingsOf = (text: string): string[] =>
  [...withoutFences(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => heading.replaceAll('`', '').trim())

/** As GitHub names the place of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')

const linksOf = ({ text }: Page): string[] =>
  [...withoutFences(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)

/** Null: it leads out of the repository. */
function targetOf(file: string, link: string): { readonly page: string; readonly anchor: string | null } | null {
  if (/^[a-z]+:/.test(link)) return null
  const [to = '', anchor = null] = link.split('#')
  return { page: to === '' ? file : path.posix.join(path.posix.dirname(file), to), anchor }
}

function linkComplaints(page: Page, files: Files): string[] {
  return linksOf(page).flatMap((link) => {
    const target = targetOf(page.file, link)
    if (target === null) return []
    const isFolder = [...files.keys()].some((file) => file.startsWith(`${target.page.replace(/\/$/, '')}/`))
    if (!files.has(target.page) && !isFolder) return [`${page.file}: the link ${link} leads nowhere`]
    if (target.anchor === null) return []
    const anchors = headingsOf(files.get(target.page) ?? '').map(anchorOf)
    return anchors.includes(target.anchor) ? [] : [`${page.file}: the link ${link} names no heading`]
  })
}

/** Files and folders that a page names in backticks, from the root of the repository on. */
function nameComplaints({ file, text }: Page, files: Files): string[] {
  const roots = new Set([...files.keys()].flatMap((known) => (known.includes('/') ? [known.split('/')[0]] : [])))
  const names = [...withoutFences(text).matchAll(/`((?:[\w.-]+\/)+(?:[\w-]+(?:\.[\w-]+)*\.[jt]s|[\w-]+\.sql)?)`/g)]
    .map(([, name = '']) => name)
    .filter((name) => roots.has(name.split('/')[0]))
  const exists = (name: string): boolean =>
    name.endsWith('/') ? [...files.keys()].some((known) => known.startsWith(name)) : files.has(name)
  return names.filter((name) => !exists(name)).map((name) => `${file}: ${name} does not exist`)
}

/** A page that no page leads to is not found. */
function orphanComplaints(pages: readonly Page[]): string[] {
  const linked = new Map(
    pages.map((page) => [page.file, linksOf(page).flatMap((link) => targetOf(page.file, link)?.page ?? [])]),
  )
  const reached = new Set(['README.md'])
  for (const page of reached) for (const next of linked.get(page) ?? []) reached.add(next)
  return pages.filter(({ file }) => !reached.has(file)).map(({ file }) => `${file}: no page that is found leads to it`)
}

function readmeComplaints(readme: string): string[] {
  const lines = readme.trimEnd().split('\n').length
  return lines <= maxReadmeLines ? [] : [`README.md: ${lines} lines, at most ${maxReadmeLines}`]
}

/** Every setting is explained, and nothing that is none. */
function settingComplaints(files: Files): string[] {
  const example = files.get('.env.example') ?? ''
  const known = [...example.matchAll(/^#([A-Z][A-Z0-9_]+)=/gm)].map(([, name = '']) => name)
  const explained = firstCellsOf(files.get('docs/settings.md') ?? '').filter((name) => /^[A-Z][A-Z0-9_]+$/.test(name))
  return differenceComplaints('docs/settings.md', known, explained)
}

function dependencyComplaints(files: Files): string[] {
  const text = files.get('package.json')
  if (typeof text !== 'string') return []
  const manifest = JSON.parse(text) as Record<string, Readonly<Record<string, string>> | undefined>
  const { dependencies, devDependencies, optionalDependencies } = manifest
  const known = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })
  const named = firstCellsOf(files.get('docs/dependencies.md') ?? '')
  const families = named.filter((name) => name.endsWith('/*')).map((name) => name.slice(0, -1))
  const isNamed = (name: string): boolean => families.some((family) => name.startsWith(family))
  return differenceComplaints(
    'docs/dependencies.md',
    known.filter((name) => !isNamed(name)),
    named.filter((name) => !name.endsWith('/*')),
  )
}

function differenceComplaints(page: string, known: readonly string[], named: readonly string[]): string[] {
  return [
    ...known.filter((name) => !named.includes(name)).map((name) => `${page}: ${name} is not explained`),
    ...named.filter((name) => !known.includes(name)).map((name) => `${page}: there is no ${name}`),
  ]
}

/** What stands in backticks in the first column of tables. */
const firstCellsOf = (text: string): string[] =>
  [...text.matchAll(/^\| ([^|]+)\|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  )

const root = path.resolve(import.meta.dirname, '..')
const skipped = new Set(['node_modules', '.git', '.data', '.tap'])
const textFile = /\.(?:md|json|sh|txt)$|^\.env\.example$|^LICENSE$/

function repository(): Files {
  const found = readdirSync(root, { withFileTypes: true })
    .filter(({ name }) => !skipped.has(name))
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(entry.name) : [entry.name]))
  // This very file has bad examples in it.
  const isText = (file: string): boolean => (codeFile.test(file) || textFile.test(file)) && file !== 'test/docs.test.ts'
  return new Map(found.map((file) => [file, isText(file) ? readFileSync(path.join(root, file), 'utf8') : null]))
}

const filesBelow = (folder: string): string[] =>
  readdirSync(path.join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)).replaceAll(path.sep, '/'))

const pages = {
  'README.md': '[contract](docs/contract/rest.md), [guide](docs/guide.md), [decisions](docs/decisions.md)',
  'docs/contract/rest.md': '# REST\n\n## Phone calls\n\n## `Idempotency`\n\n```\n# a note\n```\n',
  'docs/guide.md': '# Guide',
  'docs/decisions.md': '# Decisions',
}
const readme = pages['README.md']

const examples: Readonly<
  Record<string, { readonly good: Record<string, string>; readonly bad: Record<string, string> }>
> = {
  'a comment cites a page by path and heading': {
    good: { 'api/a.ts': '/** Owns calls. docs/contract/rest.md "Phone calls". */' },
    bad: { 'api/a.ts': '/** Owns calls. docs/contract/rest.md "Web calls". */' },
  },
  'a comment goes on in its next line': {
    good: { 'api/a.ts': '/**\n * docs/contract/rest.md\n * "Phone calls" and "Idempotency".\n */' },
    bad: { 'api/a.ts': '/**\n * docs/contract/rest.md\n * "Phone calls" and "Lists".\n */' },
  },
  'a comment in a line of code counts': {
    good: { 'api/a.ts': 'const a = 1 // docs/guide.md' },
    bad: { 'api/a.ts': 'const a = 1 // docs/other.md' },
  },
  'the contract is cited by heading': {
    good: { 'api/a.ts': '// docs/guide.md' },
    bad: { 'api/a.ts': '// docs/contract/rest.md' },
  },
  'a page outside of the repository cannot be cited': {
    good: { 'api/a.ts': '// RFC 9110 section 14' },
    bad: { 'api/a.ts': '// media.md, "Jitter"' },
  },
  'nor can its title': {
    good: { 'api/a.ts': '// The RFC is a specification.' },
    bad: { 'api/a.ts': '// As the specification\n// says.' },
  },
  'SQL has comments too': {
    good: { 'store/a.sql': '-- docs/contract/rest.md "Idempotency"' },
    bad: { 'store/a.sql': '-- rest-api-and-webhooks.md' },
  },
  'a name in a string is no citation': {
    good: { 'api/a.ts': "const name = 'readme.md'\n// `${'x'}`" },
    bad: { 'api/a.ts': "const hint = 'see docs/other.md'" },
  },
  'a note in an example is no heading': {
    good: {},
    bad: { 'api/a.ts': '// docs/contract/rest.md "a note"' },
  },
  'links lead somewhere': {
    good: { 'docs/guide.md': '[a](contract/rest.md) [b](../README.md) [c](https://example.com) ![d](../README.md)' },
    bad: { 'docs/guide.md': '[a](rest.md)' },
  },
  'links name headings': {
    good: { 'docs/guide.md': '[a](contract/rest.md#phone-calls) [b](#next)\n## Next' },
    bad: { 'docs/guide.md': '[a](contract/rest.md#calls)' },
  },
  'pictures exist': { good: {}, bad: { 'docs/guide.md': '![a](page.png)' } },
  'files that a page names exist': {
    good: { 'api/a.ts': '', 'docs/guide.md': '`api/a.ts`, `api/`, `a/b` and `GET /x/y`' },
    bad: { 'api/a.ts': '', 'docs/guide.md': '`api/b.ts`' },
  },
  'folders that a page names exist': {
    good: {},
    bad: { 'api/a.ts': '', 'docs/guide.md': '`api/b/`' },
  },
  'a page is found from the README': { good: {}, bad: { 'docs/hidden.md': '# Hidden' } },
  'the README is short': {
    good: { 'README.md': `${readme}\n`.padEnd(readme.length + 149, '\n') },
    bad: { 'README.md': `${readme}${'\nx'.repeat(150)}` },
  },
  'every setting is explained': {
    good: { '.env.example': '#PORT=1', 'docs/guide.md': '[s](settings.md)', 'docs/settings.md': '| `PORT` | x |' },
    bad: { '.env.example': '#PORT=1' },
  },
  'nothing else is explained as a setting': {
    good: {},
    bad: { 'docs/guide.md': '[s](settings.md)', 'docs/settings.md': '| `PORT` | x |' },
  },
  'every dependency has a reason': {
    good: {
      'package.json': '{"dependencies":{"zod":"1","@x/a":"1"}}',
      'docs/guide.md': '[d](dependencies.md)',
      'docs/dependencies.md': '| `zod`, `@x/*` | x |',
    },
    bad: { 'package.json': '{"dependencies":{"zod":"1"}}' },
  },
}

for (const [name, { good, bad }] of Object.entries(examples)) {
  test(`the rules see it: ${name}`, (t) => {
    t.same(complaintsOf(new Map(Object.entries({ ...pages, ...good }))), [])
    const complaints = complaintsOf(new Map(Object.entries({ ...pages, ...bad })))
    t.equal(complaints.length, 1, complaints.join('; '))
    t.end()
  })
}

test('everything that the repository cites exists', (t) => {
  const files = repository()
  t.ok(files.size > 500, `${files.size} files were found`)
  t.same(complaintsOf(files), [])
  t.end()
})
