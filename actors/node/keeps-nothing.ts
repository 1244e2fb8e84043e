/** Owns what stands for kept steps where there is no disk to keep them on: each goes to the database, or fails. */
import type { StepWriter } from '../../store/step-groups.ts'
import type { KeptSteps } from './kept-steps.ts'

export const keepsNothing = ({ write }: StepWriter): KeptSteps => ({
  write,
  bear: () => Promise.reject(new Error('there is no disk to keep a call on')),
  ids: () => [],
  keeps: () => false,
  count: () => 0,
  isAway: () => false,
  settled: async () => {},
  adopt: async () => {},
  start: async () => {},
  close: async () => {},
})
