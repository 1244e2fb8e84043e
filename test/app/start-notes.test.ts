/** What an operator is told about settings before anything runs: names that are mistyped, and what matters and is not set. */
import { test } from 'tap'
import { readConfig, settingNames } from '../../app/config.ts'
import { mistypedOf } from '../../app/config/mistyped.ts'
import { notesOf } from '../../app/unset-notes.ts'

test('a variable that is almost a setting is named with the one that is meant, others are nobody’s business', async (t) => {
  const meantOf = (...names: string[]) => [
    ...mistypedOf(Object.fromEntries(names.map((name) => [name, 'x'])), settingNames),
  ]
  t.same(meantOf('PUBLIC_ULR', 'DATABSE_URL', 'APPSECRET', 'data_dir', 'APP_SECRT_FILE', 'MEDIA_PUBLIC_ADRESS'), [
    ['PUBLIC_ULR', 'PUBLIC_URL'],
    ['DATABSE_URL', 'DATABASE_URL'],
    ['APPSECRET', 'APP_SECRET'],
    ['data_dir', 'DATA_DIR'],
    ['APP_SECRT_FILE', 'APP_SECRET_FILE'],
    ['MEDIA_PUBLIC_ADRESS', 'MEDIA_PUBLIC_ADDRESS'],
  ])
  t.same(meantOf(...settingNames, 'APP_SECRET_FILE', 'HOME', 'PATH', 'HOSTNAME', 'SHELL', 'NODE_OPTIONS', 'LANG'), [])
})

test('each thing that matters and is not set is a sentence that names the setting; one that is set is not spoken of', async (t) => {
  const notes = (environment: Record<string, string>) => notesOf(readConfig({ SIP: 'off', ...environment })).join('\n')
  t.match(notes({}), /^Only this machine can call/)
  const open = notes({ HOST: '0.0.0.0', DATABASE_URL: 'postgres://127.0.0.1/parley' })
  for (const name of ['PUBLIC_URL', 'TLS_CERT', 'MEDIA_PUBLIC_ADDRESS', 'SMTP_URL']) t.match(open, name)
  t.notMatch(open, /DATABASE_URL/)
  const whole = notes({
    HOST: '0.0.0.0',
    DATABASE_URL: 'postgres://127.0.0.1/parley',
    PUBLIC_URL: 'https://call.example',
    MEDIA_PUBLIC_ADDRESS: '192.0.2.1',
    SMTP_URL: 'smtps://mail.example',
    EMAIL_FROM: 'parley@call.example',
  })
  t.equal(whole, '')
})

test('what was switched off and makes things less safe is told as well', async (t) => {
  const notes = notesOf(
    readConfig({
      DATABASE_URL: 'postgres://127.0.0.1/parley',
      PUBLIC_URL: 'http://call.example',
      MEDIA_PUBLIC_ADDRESS: '192.0.2.1',
      SMTP_URL: 'smtp://mail.example',
      SMTP_REQUIRE_TLS: 'off',
      EMAIL_FROM: 'parley@call.example',
      SIP_TLS_VERIFY: 'off',
    }),
  )
  t.same(
    notes.map((note) => note.split(' ')[0]),
    ['PUBLIC_URL', 'SMTP_REQUIRE_TLS', 'SIP_TLS_VERIFY'],
  )
})

test('stored secrets that another key has sealed are told with what opens them', async (t) => {
  const noteOf = (environment: Record<string, string>) =>
    notesOf(readConfig({ SIP: 'off', ...environment }), { foreignSecrets: 2 })[0] ?? ''
  t.match(noteOf({ APP_SECRET: 'x'.repeat(32) }), /^APP_SECRET opens none of 2 stored secrets.*<this one>,<the one of/)
  t.match(noteOf({ DATA_DIR: '/data' }), /^2 stored secrets .* by the key in \/data\/app\.key: bring back the file/)
})
