/** docs/contract/rest.md "Web calls": which pages a list of origins admits, and which lists are taken. */
import { test } from 'tap'
import { admitsOrigin, WebOrigin } from '../../model/web-origin.ts'

test('https://*.example.com admits exactly one label more', (t) => {
  const patterns = ['https://*.example.com', 'http://*.localhost:3000']
  const admitted = ['https://app.example.com', 'https://a-b.example.com', 'http://tenant.localhost:3000']
  for (const origin of admitted) t.ok(admitsOrigin(patterns, origin), origin)
  const refused = [
    'https://a.b.example.com',
    'https://example.com',
    'https://evil-example.com',
    'https://evil.example.com.evil.example',
    'https://.example.com',
    'https://*.example.com',
    'http://app.example.com',
    'https://app.example.com:8443',
    'https://app.example.com/',
    'https://evil.example/.example.com',
    'https://user@app.example.com',
    'https://app.example.org',
    'http://tenant.localhost',
    'null',
    '',
  ]
  for (const origin of refused) t.notOk(admitsOrigin(patterns, origin), origin)
  t.end()
})

test('a star stands for the whole first label or is refused', (t) => {
  const taken = [
    'https://app.example.com',
    'http://localhost:8080',
    'https://*.example.com',
    'https://*.example.com:8443',
  ]
  for (const text of [...taken, 'http://*.localhost:3000']) t.ok(WebOrigin.safeParse(text).success, text)
  const refused = [
    '*',
    'https://*',
    'https://*:*',
    'https://*.com',
    'https://*.com.',
    'https://*example.com',
    'https://app*.example.com',
    'https://app.*.com',
    'https://app.*',
    'https://*.*.example.com',
    'https://*.app.*.com',
    'https://*.example.com/',
    'https://*.example.com:*',
    '*://app.example.com',
    'https://*.0.0.1',
    '*.example.com',
  ]
  for (const text of refused) t.notOk(WebOrigin.safeParse(text).success, text)
  t.end()
})

test('a list of before, with stars in other places, admits nobody by them', (t) => {
  const stored = ['https://app*.example.com', 'https://*', 'https://shop.example']
  t.notOk(admitsOrigin(stored, 'https://app1.example.com'))
  t.notOk(admitsOrigin(stored, 'https://anything'))
  t.ok(admitsOrigin(stored, 'https://shop.example'))
  t.end()
})
