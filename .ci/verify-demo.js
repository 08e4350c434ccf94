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
for (const { name, allowed, rejected, counted } of summary.gateways) {
  assert.ok(allowed > 0 && rejected > 0, `${name} allows and rejects`)
  assert.deepEqual(counted, { allowed, rejected }, `${name} counts what its clients see`)
}
assert.ok(summary.abusive.rejected > summary.abusive.allowed, 'the abusive client is rejected most of the time')
assert.equal(summary.ok, true, 'the demo found all in order')
if (summary.latestMs < LATE) {
  const { rejected, storeDown } = summary.others
  if (storeDown > 0) console.log(`not judged: ${storeDown} of others rejected while the store's answer was overdue`)
  assert.equal(rejected, storeDown, 'nobody else is rejected')
  const { limit, worstIntervalAllowed } = summary.abusive
  assert.ok(worstIntervalAllowed <= limit * 1.1, `${worstIntervalAllowed} of ${limit} in an interval`)
  for (const { allowed, globalLimit } of summary.intervals) assert.ok(allowed <= globalLimit * 1.1, `${allowed} of ${globalLimit} in all`)
} else console.log(`not judged by accuracy: a request was ${summary.latestMs} ms late`)
console.log('the demo held its limits')
