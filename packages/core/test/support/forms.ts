import type { Algorithm, AnyAlgorithm } from '../../src/algorithms/algorithm.ts'
import type { SharedCoordination, SharedShape } from '../../src/algorithms/shape.ts'
import { FORMS, formOf } from '../../src/counting/forms.ts'
import type { SharedForm } from '../../src/counting/site.ts'

let made = 0

/** The form that makes the meters of an algorithm whose counts are synced. */
export function sharedForm({ shape }: AnyAlgorithm, coordination: SharedCoordination): SharedForm {
  return formOf(shape as SharedShape, coordination)
}

/** The algorithm with another meter for one coordination. It has its own shape, so that no other algorithm gets the meter. */
export function withForm(algorithm: AnyAlgorithm, coordination: SharedCoordination, form: SharedForm): Algorithm {
  const kind = `test ${made++}`
  Object.assign(FORMS[coordination], { [kind]: () => form })
  return { ...algorithm, shape: { kind, coordinations: [coordination] } } as unknown as Algorithm
}
