/** docs/security.md "Personal data": by what a person is recognised in a text, and what is left of a log that told of one. */
import { test } from 'tap'
import { blankedAnswer, blankedBody, blankedLog } from '../../actors/privacy/blanked.ts'
import { createOwnershipTest, createTraceFinder } from '../../actors/privacy/person-traces.ts'
import type { CallId, PersonId } from '../../model/ids.ts'
import type { PersonTraces } from '../../store/erasures.ts'

const traces: PersonTraces = {
  personId: '01980a5e-7c1b-7d2e-9f10-2b3c4d5e6f70' as PersonId,
  firstName: 'Jörg',
  lastName: "O'Straße Łukasz",
  isNameOwn: true,
  externalId: 'crm-4711',
  phoneNumber: '+4930901820777',
  email: 'joerg.o+x@mail-box.example',
  urls: ['https://in.example/joerg'],
}

const named = [
  '+4930901820777',
  '4930901820777',
  '0049 30 901820777',
  '+49 (0)30 901820777',
  '+49 (30) 901-820-777',
  '030 901 820 777',
  '030/901820-777',
  '30901820777',
  'tel:+4930901820777',
  'sip:%2B4930901820777@host',
  'zero three zero nine zero one eight two zero seven seven seven',
  'Oh three oh, nine oh one, eight two oh, double seven seven.',
  'null drei null neun null eins acht zwo null sieben sieben sieben',
  'plus four nine three zero nine zero one eight two zero seven seven seven',
  'three 0 nine 0 one 8 two 0 seven 7 seven',
  'JOERG.O+X@MAIL-BOX.EXAMPLE',
  'mailto:joerg.o+x@mail-box.example',
  'joerg dot o plus x at mail dash box dot example',
  'joerg Punkt o plus x ät mail Bindestrich box Punkt example',
  "Jörg O'Straße Łukasz",
  "JÖRG O'STRAßE ŁUKASZ",
  "Joerg O'Strasse Łukasz",
  "Jo\u0308rg O'Straße Łukasz",
  "Jorg O'Straße Łukasz",
  "Jörg Maria O'Straße Łukasz",
  "O'Straße Łukasz, Jörg",
  'crm-4711',
  '01980A5E-7c1b-7d2e-9f10-2b3c4d5e6f70',
  'https://in.example/joerg',
]
const notNamed = [
  '+49309018207771',
  '+49309018207',
  '1930901820777',
  'three zero nine zero one eight two zero seven seven eight',
  'joerg.o+x@mail-box.exampleton',
  'otherjoerg.o+x@mail-box.example',
  'Jörg Müller',
  "Herr O'Straße Łukasz",
  'crm-47110',
  'acrm-4711',
  'https://in.example/joergen',
  '2026-01-01T12:00:00.000Z',
  '',
]

test('a person is found in every spelling that is promised, and nobody else is', (t) => {
  const { coarse, names, redacted } = createTraceFinder(traces)
  for (const text of named) {
    const around = `before, ${text}, after`
    t.ok(names(text) && names(around), text)
    t.notMatch(redacted(around), /901820|mail.{0,12}box|łukasz|4711|6f70|joerg|seven|sieben/i, text)
    t.match(redacted(around), /^before, .*after$/)
  }
  for (const text of notNamed) t.equal(redacted(text), text, text)
  t.type(coarse, 'string')
  t.end()
})

test('names that others have, short numbers and plain words are no traces', (t) => {
  const few = { ...traces, isNameOwn: false, externalId: 'Premium', phoneNumber: '+4930200', email: null, urls: [] }
  const { names } = createTraceFinder(few)
  for (const text of [...named.filter((text) => /rg/.test(text)), 'Premium', '30200']) t.notOk(names(text), text)
  for (const text of ['+4930200', '030 200', '+49 30 200']) t.ok(names(text), text)
  t.end()
})

test('a call is whose link it has, then whose id of another system, then whose number or address', (t) => {
  const belongs = createOwnershipTest(traces)
  const call = {
    id: '' as CallId,
    direction: 'inbound',
    personId: null,
    fromNumber: null,
    toNumber: null,
    customer: null,
    isOver: true,
  } as const
  const other = { ...call, personId: '01980a5e-7c1b-7d2e-9f10-000000000000' as PersonId }
  const customer = (over: object) => ({ type: 'lead' as const, ...over })
  for (const own of [
    { ...other, personId: traces.personId },
    { ...call, fromNumber: '+4930901820777' },
    { ...call, direction: 'outbound' as const, toNumber: '+4930901820777' },
    { ...call, customer: customer({ phoneNumber: '030 901 820 777' }) },
    { ...call, customer: customer({ email: ' Joerg.O+x@mail-box.example' }) },
    { ...call, customer: customer({ externalId: 'crm-4711' }) },
  ])
    t.ok(belongs(own), JSON.stringify(own))
  for (const foreign of [
    { ...other, fromNumber: '+4930901820777' },
    { ...call, toNumber: '+4930901820777' },
    { ...call, fromNumber: '+4930901820777', customer: customer({ externalId: 'crm-1' }) },
    { ...call, customer: customer({ firstName: 'Jörg', lastName: "O'Straße Łukasz" }) },
    call,
  ])
    t.notOk(belongs(foreign), JSON.stringify(foreign))
  t.end()
})

test('of JSON that told of somebody the structure stays, numbers, and words of ours', (t) => {
  const words = {
    turn: { role: 'user', text: 'I am Jörg', from: 1, to: 2, confidence: 0.5, source: 'embedded' },
    notes: [{ key: 'a', value: 'Jörg' }],
  }
  t.strictSame(blankedLog({ type: 'caller_heard', words }), {
    type: 'caller_heard',
    words: { turn: { role: 'user', text: '', from: 1, to: 2, confidence: 0.5, source: 'embedded' }, notes: [] },
  })
  t.strictSame(
    blankedLog({
      type: 'ringing',
      providerStatus: '180 Jörg is called',
      unknownYet: { deep: ['Jörg', 7, true, null] },
    }),
    {
      type: 'ringing',
      providerStatus: '180',
      unknownYet: { deep: ['', 7, true, null] },
    },
  )
  t.strictSame(blankedLog([{ type: 'run_tool', id: 't', name: 'crm', arguments: { Jörg: 1 } }]), [
    { type: 'run_tool', id: 't', name: 'crm', arguments: {} },
  ])
  t.strictSame(blankedLog({ type: 'x', name: 'Jörg', memory: 'Jörg', instructions: null }), {
    type: 'x',
    name: '',
    memory: null,
    instructions: null,
  })
  t.strictSame(blankedBody('no JSON'), '{"type":null,"data":{}}')
  t.strictSame(
    blankedAnswer({ id: 'c', status: 'queued', toNumber: '+49', customer: { firstName: 'Jörg' }, workerId: 'w' }),
    {
      id: 'c',
      status: 'queued',
      workerId: 'w',
    },
  )
  t.end()
})
