/** What the numbering plans of the world say of a number: its country, and whether it costs its caller dearly. */
import { test } from 'tap'
import { costlyRangeOf, countryOf, isWithin } from '../../net/numbering-plans.ts'

test('the country of a number, also where many share a calling code', (t) => {
  for (const [number, country] of [
    ['+12025550150', 'US'],
    ['+14165551234', 'CA'],
    ['+18765551234', 'JM'],
    ['+18095551212', 'DO'],
    // No area code of anybody.
    ['+15551234567', 'US'],
    ['+442079460000', 'GB'],
    ['+447624123456', 'IM'],
    ['+77012345678', 'KZ'],
    ['+4930123456', 'DE'],
    ['+88216123456', null],
    ['+870773123456', null],
    ['+99912345678', null],
    ['+1', null],
    ['', null],
  ] as const)
    t.equal(countryOf(number), country, number)
  t.end()
})

test('within a country is what lies in it, and what is free to call from there', (t) => {
  for (const [country, number, expected] of [
    ['US', '+12025550150', true],
    ['US', '+18765551234', false],
    ['US', '+14165551234', false],
    ['CA', '+18005551234', true],
    ['US', '+448001111111', false],
    ['GB', '+447624123456', false],
    ['US', '+88216123456', false],
    ['DE', '+49180', true],
  ] as const)
    t.equal(isWithin(country, number), expected, `${number} in ${country}`)
  t.end()
})

test('numbers that cost their caller dearly, and the range that an operator opens', (t) => {
  for (const [number, kind, range] of [
    ['+448451234567', 'premium rate', '+44845'],
    // The zero that people write in brackets.
    ['+4408451234567', 'premium rate', '+44845'],
    ['+491801234567', 'shared cost', '+49180'],
    ['+33899123456', 'premium rate', '+33899'],
    ['+39899123456', 'premium rate', '+39899'],
    ['+358600123456', 'premium rate', '+358600'],
    ['+48701234567', 'premium rate', '+48701'],
    ['+44760123456', 'pager', '+44760'],
    // Digits too many, and too few.
    ['+371900123456', 'premium rate', '+371900'],
    ['+61190012345', 'premium rate', '+61190'],
  ] as const)
    t.same(costlyRangeOf(number), { kind, range }, number)
  for (const number of [
    '+12025550150',
    '+15551234567',
    '+4930123456',
    '+4930100',
    '+4915112345678',
    '+448001111111',
    '+390612345678',
  ])
    t.equal(costlyRangeOf(number), null, number)
  t.end()
})
