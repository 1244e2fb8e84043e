/** The one way in which telephone numbers are read. */
import { test } from 'tap'
import { canonicalNumber, numberFactsOf, numberFaultOf, readNumber } from '../../net/read-number.ts'

test('a number with its country code is read in every spelling', (t) => {
  for (const text of [
    '+4930123456',
    ' +49 30 123456 ',
    '+49 (0)30 123-456',
    '+49 30/123456',
    '+49.30.123456',
    '0049 30 123456',
    '(0049) 30 123456',
    '＋４９３０１２３４５６',
    '+49030123456',
  ])
    t.equal(readNumber(text), '+4930123456', text)
  t.equal(readNumber('+39 06 1234567'), '+39061234567', 'of Italy the zero belongs to the number')
  t.end()
})

test('a national form is read within its country, and nowhere without one', (t) => {
  const rows: [string, string, string | null][] = [
    ['030 123456', 'DE', '+4930123456'],
    ['(030) 123-456', 'DE', '+4930123456'],
    ['0170 1234567', 'DE', '+491701234567'],
    ['020 7123 4567', 'GB', '+442071234567'],
    ['06 1234 5678', 'IT', '+390612345678'],
    ['(212) 555-0150', 'US', '+12125550150'],
    ['1 212 555 0150', 'US', '+12125550150'],
    ['011 49 30 123456', 'US', '+4930123456'],
    ['٠٣٠١٢٣٤٥٦', 'DE', '+4930123456'],
    ['110', 'DE', null],
    ['1002', 'DE', null],
    ['4930123456', 'DE', null],
    ['030 123456', 'XX', null],
  ]
  for (const [text, country, number] of rows) t.equal(readNumber(text, country), number, `${text} in ${country}`)
  t.equal(readNumber('030 123456'), null)
  t.equal(readNumber('2125550150'), null)
  t.end()
})

test('what is no number is none', (t) => {
  for (const text of [
    '',
    ' ',
    '+',
    'hello',
    'extension 12, after nine',
    'call +4930123456 now',
    '+49 30 123456 or +49 30 123457',
    '+999123456789',
    '+0301234567',
    '+1234567890123456',
    '+49 30 123456 ext. 12',
    '1-800-FLOWERS',
    '+49',
    '+',
    `+4930${' '.repeat(70)}123456`,
    '9'.repeat(10_000),
    '+4930123456\u0000',
    "+4930123456' or 1=1",
  ]) {
    t.equal(readNumber(text), null, JSON.stringify(text.slice(0, 60)))
    t.equal(readNumber(text, 'DE'), null, JSON.stringify(text.slice(0, 60)))
  }
  t.end()
})

test('a number with its country code that the plan does not know is kept, and told as not valid', (t) => {
  t.equal(readNumber('+1 555 0100'), '+15550100')
  t.same(numberFactsOf('+15550100'), { country: null, type: null, isValid: false })
  t.same(numberFactsOf('+4930123456'), { country: 'DE', type: 'fixed_line', isValid: true })
  t.same(numberFactsOf('+491701234567'), { country: 'DE', type: 'mobile', isValid: true })
  t.same(numberFactsOf('+18005550199'), { country: 'US', type: 'toll_free', isValid: true })
  t.same(numberFactsOf('+999123456789'), { country: null, type: null, isValid: false })
  t.end()
})

test('of what has the shape of E.164 nothing is lost on the wire', (t) => {
  t.equal(canonicalNumber('+49030123456'), '+4930123456')
  for (const number of ['+999123456789', '+15550100', '+4930', '+44007012345678'])
    t.equal(canonicalNumber(number), number)
  t.end()
})

test('who sent no number is told what would be one', (t) => {
  t.match(numberFaultOf(null), /country code, like \+4930123456$/)
  t.match(numberFaultOf('DE'), /as it is dialed within DE$/)
  t.end()
})
