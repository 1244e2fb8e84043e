/** Owns whether the database answers, asked by one small question at a time however many want to know. */
import type { Clock } from '../model/clock.ts'
import { deadline } from '../model/deadline.ts'
import type { Sql } from './sql.ts'

/** Ms. A question that took longer counts as unanswered until it is over. */
const patience = 500

export function createDatabaseAnswers(sql: Sql, clock: Pick<Clock, 'after'>): () => Promise<boolean> {
  let asked: { readonly answer: Promise<boolean>; isLate: boolean } | null = null
  const ask = () => {
    const answer = sql`select 1`.then(
      () => true,
      () => false,
    )
    const question = { answer, isLate: false }
    void answer.then(() => (asked = null))
    return question
  }
  return async () => {
    const question = (asked ??= ask())
    if (question.isLate) return false
    return deadline(clock, patience, question.answer, () => {
      question.isLate = true
      return false
    })
  }
}
