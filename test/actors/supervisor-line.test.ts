/** docs/supervision.md on the line of a supervisor: when a browser that says nothing is taken for one that is gone. */
import { test } from 'tap'
import { createLocalBus } from '../../actors/bus/local-bus.ts'
import { createSupervisorLine } from '../../actors/supervision/supervisor-line.ts'
import { subjectsOf } from '../../model/bus.ts'
import { toBytes } from '../../model/bus-json.ts'
import type { CallId } from '../../model/ids.ts'
import type { Presence } from '../../model/rtp-transport.ts'
import { createHandClock } from '../fake/hand-clock.ts'
import { createQuietLog } from '../fake/quiet-log.ts'

const callId = '0198c000-0000-7000-8000-000000000001' as CallId
const id = '0198c000-0000-7000-8000-000000000002'
/** Of a look at what may have ended. */
const look = 5_000

test('who gives the call back has closed their microphone and is not gone: their silence counts some looks later', async (t) => {
  const [clock, log] = [createHandClock(), createQuietLog()]
  const bus = createLocalBus({ clock, log })
  t.teardown(() => bus.close())
  const told: Presence[] = []
  const nothing = (): void => undefined
  const media = {
    answer: async () => '',
    addCandidate: async () => undefined,
    dtmf: nothing,
    typed: nothing,
    hangUp: () => false,
    wasReached: () => true,
    presence: (presence: Presence) => void told.push(presence),
    release: nothing,
    close: async () => undefined,
  }
  let ends = 0
  const ended = (): void => void ends++
  const line = createSupervisorLine({ bus, clock, log, media, callId, id, mayStill: async () => true, ended })
  t.teardown(() => line.close())
  const { supervised, heard } = subjectsOf(callId)
  const speaks = async (voice: string | null): Promise<void> => {
    bus.publish(supervised, toBytes({ supervisors: [id], voice }))
    await bus.flush()
  }
  const passes = async (ms: number): Promise<void> => {
    bus.publish(heard, new Uint8Array())
    await bus.flush()
    clock.advance(ms)
  }
  await speaks(null)
  t.same(told, [], 'who only listens is judged as from the beginning')
  await speaks(id)
  t.same(told, ['left'], 'of who speaks silence tells')
  await passes(look - 1)
  await speaks(null)
  t.same(told, ['left', 'lost'])
  await passes(1)
  t.same(told, ['left', 'lost'], 'a look right behind it is none')
  await passes(look)
  t.same(told, ['left', 'lost', 'left'])
  t.equal(ends, 0)
})
