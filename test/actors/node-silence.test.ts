/** Which nodes are taken for dead: silence counts only as far as what was told would have come. */
import { test } from 'tap'
import {
  createNodeSilence,
  frozenAfter,
  longestPatience,
  othersAfter,
  silentAfter,
  type NodeSilence,
} from '../../actors/node/node-silence.ts'
import type { CallId, NodeId } from '../../model/ids.ts'
import type { NodeBeat } from '../../model/node-beat.ts'

const beat: NodeBeat = { roles: ['actors'], running: 1, room: 5, draining: false, holds: false }
const node = (name: string) => name as NodeId
const [anna, berta, carla] = [node('anna'), node('berta'), node('carla')]

/** It has ended, as the bus knows from this time on. */
const ended = (silence: NodeSilence, nodeId: NodeId, at: number): void => {
  silence.beat(nodeId, beat, at)
  silence.left(nodeId, at)
}

test('a node that has ended is silent when the bus has answered for long enough after its last beat, and is told once', async (t) => {
  const silence = createNodeSilence()
  ended(silence, anna, 0)
  t.same(silence.reached(silentAfter - 1), [])
  t.same(silence.sightings(), { silent: [], heard: [anna], left: [] })
  t.same(silence.reached(silentAfter), [anna])
  t.same(silence.reached(silentAfter + 50), [])
  t.same(silence.sightings(), { silent: [anna], heard: [], left: [anna] })
  silence.beat(anna, beat, 1_000)
  t.same(silence.sightings(), { silent: [], heard: [anna], left: [] }, 'it was only asleep')
  silence.left(anna, 999)
  t.same(silence.reached(1_000 + silentAfter), [], 'what the bus knew before says nothing')
  silence.left(anna, 1_200)
  t.same(silence.reached(1_000 + silentAfter), [anna], 'and falls silent again')
})

test('a node that listens and says nothing is busy: it has a second, and one that answers has another', async (t) => {
  const silence = createNodeSilence()
  silence.beat(anna, beat, 0)
  silence.reached(150)
  t.same(silence.suspects(), [])
  silence.reached(200)
  t.same(silence.suspects(), [anna], 'it is asked')
  t.same(silence.reached(frozenAfter - 1), [])
  silence.answered(anna, frozenAfter - 1)
  t.same(silence.suspects(), [])
  t.same(silence.reached(frozenAfter), [])
  t.same(silence.reached(2 * frozenAfter - 1), [anna])
  t.same(silence.suspects(), [], 'nobody asks for one that is silent')
  silence.answered(anna, 2 * frozenAfter)
  t.same(
    silence.sightings(),
    { silent: [anna], heard: [], left: [] },
    'its calls are others’ until it beats; it has not ended',
  )
})

test('a busy node that was taken for dead and came back has twice as long the next time, until it was well for a minute; one that ended has not', async (t) => {
  const silence = createNodeSilence()
  let now = 0
  silence.beat(anna, beat, now)
  const silentFor = (): number => {
    const from = now
    while (silence.reached(now).length === 0) now += 100
    return now - from
  }
  const patiences = []
  for (let time = 0; time < 4; time++) {
    patiences.push(silentFor())
    silence.beat(anna, beat, now)
  }
  t.same(patiences, [frozenAfter, 2 * frozenAfter, longestPatience, longestPatience])
  silence.left(anna, now)
  t.equal(silentFor(), Math.ceil(silentAfter / 100) * 100)
  for (let beats = 0; beats < 700; beats++) silence.beat(anna, beat, (now += 100))
  t.equal(silentFor(), frozenAfter)
})

test('for as long as this process was late itself nobody’s silence counts, but of one that has ended', async (t) => {
  const silence = createNodeSilence()
  silence.beat(anna, beat, 0)
  silence.beat(berta, beat, 0)
  silence.stood(200)
  silence.stood(100)
  silence.left(berta, 300)
  t.same(silence.reached(silentAfter), [berta])
  t.same(silence.reached(frozenAfter + 299), [])
  t.same(silence.reached(frozenAfter + 300), [anna])
  silence.beat(anna, beat, 2_000)
  t.same(silence.reached(2_000 + 2 * frozenAfter), [anna], 'what was before its beat is over')
})

test('while the own bus is away nobody is silent and nobody is heard; after it the others have time to come back', async (t) => {
  const silence = createNodeSilence()
  t.same(silence.sightings(), { silent: [], heard: [], left: [] })
  silence.beat(anna, beat, 0)
  silence.reached(0)
  silence.wasAway(30_000)
  t.same(silence.sightings(), { silent: [], heard: [], left: [] })
  t.same(silence.reached(30_400), [])
  t.same(silence.sightings(), { silent: [], heard: [anna], left: [] })
  t.same(silence.reached(31_500 + silentAfter), [])
  t.same(silence.reached(31_500 + frozenAfter), [anna])
})

test('a node that leaves is silent at once, and what comes late of it brings it back no more', async (t) => {
  const silence = createNodeSilence()
  silence.beat(anna, beat, 0)
  silence.beat(anna, { ...beat, leaves: true }, 50)
  silence.beat(anna, beat, 60)
  t.same(silence.reached(60), [anna])
  silence.beat(anna, beat, 70)
  t.same(silence.sightings(), { silent: [anna], heard: [], left: [anna] })
})

test('silent nodes are forgotten after a minute, and of a crowd of nodes the oldest', async (t) => {
  const silence = createNodeSilence()
  silence.beat(anna, beat, 0)
  silence.reached(1_000)
  silence.reached(60_001)
  t.same(silence.sightings(), { silent: [], heard: [], left: [] })
  for (let index = 0; index < 1_500; index++) silence.beat(node(String(index)), beat, 60_001)
  t.equal(silence.heard().length, 1_000)
})

test('each call of a silent node is one survivor’s first, they share them, and later anybody takes what is left', async (t) => {
  const silence = createNodeSilence()
  ended(silence, anna, 0)
  silence.reached(400)
  const both = [berta, carla]
  const calls = Array.from({ length: 200 }, (_, index) => `call${index}` as CallId)
  const firstOf = (self: NodeId) => calls.filter((id) => silence.isFirstFor(id, anna, both, self, 400))
  t.equal(firstOf(berta).length + firstOf(carla).length, 200)
  t.ok(Math.abs(firstOf(berta).length - 100) < 40, `${firstOf(berta).length} of 200`)
  t.same(
    calls.filter((id) => silence.isFirstFor(id, anna, both, berta, 400 + othersAfter)),
    calls,
  )
  t.same(
    calls.filter((id) => silence.isFirstFor(id, anna, [], berta, 400)),
    calls,
    'one alone takes all',
  )
  t.same(
    calls.filter((id) => silence.isFirstFor(id, carla, both, berta, 400)),
    calls,
    'a lease that ran out is anybody’s',
  )
})
