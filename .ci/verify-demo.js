// Verifies what `pnpm demo --json` printed: exactly one JSON object, whose numbers say that the limit held.
// usage: node .ci/verify-demo.js FILE
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'

const file = process.argv[2]
if (file === undefined) throw new Error('usage: node .ci/verify-demo.js FILE')
const summary = JSON.parse(readFileSync(file, 'utf8'))

/** Requests that came later than planned by more than this (ms) say something of the machine, not of the limit. */
const LATE = 250

assert.equal(summary.errors.count, 0, 'every request is answered')
assert.equal(summary.nodes, 3, 'the gateways know each other')
assert.equal(summary.store.kind, 'redis', 'the gateways meet in Redis')
assert.equal(summary.sync.failed, 0, 'no exchange fails')
assert.equal(summary.gateways.length, 3)
for (const { name, admitted, refused, counted } of summary.gateways) {
  assert.ok(admitted > 0 && refused > 0, `${name} admits and refuses`)
  assert.deepEqual(counted, { admitted, refused }, `${name} counts what its clients see`)
}
assert.ok(summary.abusive.refused > summary.abusive.admitted, 'the abusive client is refused most of the time')
assert.equal(summary.ok, true, 'the demo found all in order')
if (summary.latestMs < LATE) {
  const { refused, degraded } = summary.others
  if (degraded > 0) console.log(`not judged: ${degraded} of others refused while the store's answer was overdue`)
  assert.equal(refused, degraded, 'nobody else is refused')
  const { limit, worstIntervalAdmitted } = summary.abusive
  assert.ok(worstIntervalAdmitted <= limit * 1.1, `${worstIntervalAdmitted} of ${limit} in an interval`)
  for (const { admitted, globalLimit } of summary.intervals)
    assert.ok(admitted <= globalLimit * 1.1, `${admitted} of ${globalLimit} in all`)
} else console.log(`not judged by accuracy: a request was ${summary.latestMs} ms late`)
console.log('the demo held its limits')
