import { awaitOne } from '@weir/store-tests/awaited'
import { etcdRules, etcdStore } from '../../src/index.ts'

await awaitOne((address) => ({ store: etcdStore(address), rules: etcdRules(address) }))
