import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { createFolder } from '../scenes/folder.ts'

const program = path.join(path.dirname(createRequire(import.meta.url).resolve('oxlint/package.json')), 'bin/oxlint')
const config = {
  plugins: [],
  categories: { correctness: 'off' },
  jsPlugins: [path.join(import.meta.dirname, 'own-lines.js')],
  rules: { 'parley/own-lines': ['error', { max: 5 }] },
}
const lines = (count: number): string => Array.from({ length: count }, (_, at) => `  run(${at})`).join('\n')

for (const [name, code, found] of [
  ['a function of as many lines as it may have passes', `function five() {\n${lines(3)}\n}`, null],
  ['one line more does not', `function six() {\n${lines(4)}\n}`, 'six has 6 lines of its own, at most 5.'],
  [
    'blank lines and comments do not count',
    `function five() {\n${lines(3)}\n\n  // why\n  /*\n   * how\n   */\n}`,
    null,
  ],
  [
    'a factory may hold several short closures',
    `function createAll() {\n  const a = () => {\n${lines(3)}\n  }\n  function b() {\n${lines(3)}\n  }\n  return { a, b }\n}`,
    null,
  ],
  [
    'a long closure is found inside a short factory',
    `const createOne = () => {\n  const inner = () => {\n${lines(4)}\n  }\n  return inner\n}`,
    'inner has 6 lines of its own, at most 5.',
  ],
  [
    'a closure on one line is a line of the function around it',
    `function around() {\n${Array.from({ length: 4 }, (_, at) => `  run(() => ${at})`).join('\n')}\n}`,
    'around has 6 lines of its own, at most 5.',
  ],
] as const)
  test(name, async (t) => {
    const folder = await createFolder(t)
    await writeFile(path.join(folder, 'rc.json'), JSON.stringify(config))
    await writeFile(path.join(folder, 'a.js'), `${code}\n`)
    // tap instruments the processes of a test, and the linter cannot be; in CI the linter writes in colours.
    const command = [
      '-u',
      'NODE_OPTIONS',
      '-u',
      'CI',
      '-u',
      'FORCE_COLOR',
      'NO_COLOR=1',
      process.execPath,
      program,
      '-c',
      'rc.json',
      'a.js',
    ]
    const run = promisify(execFile)('env', command, { cwd: folder })
    const { stdout } = await run.catch((refusal: { stdout: string }) => refusal)
    t.match(stdout, /on 1 file with 1 rules/, 'the linter has run')
    const messages = [...stdout.matchAll(/parley\(own-lines\): (.*)/g)].map(([, message]) => message)
    t.same(messages, found === null ? [] : [found], stdout)
  })
