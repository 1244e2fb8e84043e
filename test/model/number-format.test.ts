/** How trunks write telephone numbers, and how theirs are read. */
import { test } from 'tap'
import { NumberFormat, readNational, writeNumber } from '../../model/number-format.ts'

const german = { countryCode: '49' }
const american = { countryCode: '1', nationalPrefix: '', internationalPrefix: '011' }

test('a number is written with its plus sign, without it, or as it is dialed within a country', (t) => {
  t.equal(writeNumber('+4930123456', undefined), '+4930123456')
  t.equal(writeNumber('+4930123456', 'plus', german), '+4930123456')
  t.equal(writeNumber('+4930123456', 'digits', german), '4930123456')
  t.equal(writeNumber('+4930123456', 'national', german), '030123456')
  t.equal(writeNumber('+442071234567', 'national', german), '00442071234567')
  t.equal(writeNumber('+12125550150', 'national', american), '2125550150')
  t.equal(writeNumber('+4930123456', 'national', american), '0114930123456')
  t.equal(writeNumber('1002', 'national', german), '1002', 'an extension is no number')
  t.end()
})

test('a number within the country of the trunk is read as one of the world', (t) => {
  t.equal(readNational('030123456', german), '+4930123456')
  t.equal(readNational('030/123456', german), null)
  t.equal(readNational('0 30 123-456', german), '+4930123456')
  t.equal(readNational('00442071234567', german), null, 'an international one is read as such elsewhere')
  t.equal(readNational('+4930123456', german), null)
  t.equal(readNational('1002', german), null)
  t.equal(readNational('030123456'), null, 'without a country nobody knows')
  t.equal(readNational('2125550150', american), '+12125550150')
  t.equal(readNational('12125550150', american), null)
  t.equal(readNational('1002', american), null, 'too short for a number')
  t.end()
})

test('a form that nobody knows is refused', (t) => {
  for (const wrong of [
    { called: 'e164' },
    { countryCode: '+49' },
    { countryCode: '0' },
    { nationalPrefix: 'x' },
    { x: 1 },
  ])
    t.notOk(NumberFormat.safeParse(wrong).success, JSON.stringify(wrong))
  t.end()
})
