import { awaitOne } from '@weir/testing/store-tests/awaited'
import { etcdRules, etcdStore } from '../../src/index.ts'

await awaitOne((address, timeout) => ({ store: etcdStore(address, { timeout }), rules: etcdRules(address) }))
