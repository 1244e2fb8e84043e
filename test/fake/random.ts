/** Owns what tests draw lots with. */
export { createRandom, type Random } from '../../tools/chaos/random.ts'
