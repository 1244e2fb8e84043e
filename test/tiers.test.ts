import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'tap'
import { allTests, fastTests } from './tiers.ts'

const source = (file: string): string => readFileSync(path.join(import.meta.dirname, '..', file), 'utf8')

test('the fast tier leaves out what needs a database, a browser, another program or speech, however far behind', (t) => {
  const fast = fastTests()
  for (const file of ['test/model/waiting.test.ts', 'test/sip/message.test.ts', 'test/media/leg.test.ts'])
    t.ok(fast.includes(file), file)
  for (const file of [
    'test/store/database.test.ts',
    'test/api/tenancy.test.ts',
    'test/flows/browser-call.test.ts',
    'test/voice/embedded-calls.test.ts',
    'test/contract/voice-engine-openai-realtime.test.ts',
  ]) {
    t.ok(allTests().includes(file), file)
    t.notOk(fast.includes(file), file)
  }
  t.ok(fast.length > 30 && fast.length < allTests().length, `${fast.length} of ${allTests().length}`)
  t.end()
})

test('no file of the fast tier opens a database or starts another program itself', (t) => {
  const own = ['test/tiers.test.ts', 'test/lint/own-lines.test.ts', 'test/architecture.test.ts']
  for (const file of fastTests().filter((name) => !own.includes(name)))
    t.notMatch(source(file), /openTestDatabase|node:child_process|openDatabase\(/, file)
  t.end()
})
