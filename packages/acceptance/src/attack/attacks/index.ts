import { fuzzDashboard } from '../fuzz/fuzz-dashboard.ts'
import { fuzzHttp } from '../fuzz/fuzz-http.ts'
import { fuzzIpc } from '../fuzz/fuzz-ipc.ts'
import { fuzzPublish } from '../fuzz/fuzz-publish.ts'
import { fuzzRedisReplies } from '../fuzz/fuzz-redis-replies.ts'
import { fuzzStore } from '../fuzz/fuzz-store.ts'
import type { Attack } from '../harness/attack.ts'
import { bytesPerKey } from './bytes-per-key.ts'
import { callbacks } from './callbacks.ts'
import { clockJumps } from './clock-jumps.ts'
import { corruptRedis } from './corrupt-redis.ts'
import { costs } from './costs.ts'
import { dashboardAccess, dashboardClients } from './dashboard.ts'
import { expensiveRequests } from './expensive-requests.ts'
import { forgedAddresses } from './forged-addresses.ts'
import { ipcHostileChild } from './ipc-hostile-child.ts'
import { keyFlood } from './key-flood.ts'
import { logInjection } from './log-injection.ts'
import { longKeys } from './long-keys.ts'
import { lyingStore } from './lying-store.ts'
import { methods } from './methods.ts'
import { numbers } from './numbers.ts'
import { pipelining } from './pipelining.ts'
import { smallHeap } from './small-heap.ts'
import { spellingGenerated } from './spelling-generated.ts'
import { spellingNamed } from './spelling-named.ts'
import { spellingRouteKeys } from './spelling-route-keys.ts'
import { suspended } from './suspended.ts'

/** All attacks, in the order of the table. */
export const ATTACKS: readonly Attack[] = [
  bytesPerKey,
  smallHeap,
  longKeys,
  keyFlood,
  spellingNamed,
  spellingGenerated,
  spellingRouteKeys,
  methods,
  forgedAddresses,
  pipelining,
  callbacks,
  logInjection,
  ipcHostileChild,
  lyingStore,
  corruptRedis,
  numbers,
  costs,
  dashboardAccess,
  dashboardClients,
  suspended,
  clockJumps,
  fuzzHttp,
  fuzzIpc,
  fuzzStore,
  fuzzPublish,
  fuzzRedisReplies,
  fuzzDashboard,
  expensiveRequests,
]
