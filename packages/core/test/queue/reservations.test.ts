import { expect, test } from 'vitest'
import { Request } from '../../src/queue/line.ts'
import { wanted } from '../../src/queue/options.ts'
import { Reservations } from '../../src/queue/reservations.ts'
import { queueSettings } from '../../src/queue/settings.ts'

function request(number: number): Request<never> {
  return new Request<never>(
    'k',
    wanted(undefined, queueSettings()),
    number,
    0,
    () => {},
    () => {},
  )
}

test.each([
  ['waits', false, 0],
  ['has left', true, 1],
])('the answer about a request goes to the earliest one about which policies still decide, if that %s', (_, settled, expected) => {
  const reservations = new Reservations<never, Request<never>>('p\u0000k', 'p', false)
  const [earlier, later] = [{ request: request(0) }, { request: request(1) }]
  earlier.request.settled = settled
  reservations.deciding.add(earlier).add(later)
  reservations.answered(later)
  expect([later.request.number, earlier.request.number]).toEqual([expected, 1 - expected])
})
