import { memoryStore } from '@weir/core'
import { adapterContract } from '@weir/testing'
import { describe, test } from 'vitest'
import { koaAdapter } from './adapter.ts'
import { FRAMEWORKS } from './frameworks.ts'

for (const [name, framework] of FRAMEWORKS) {
  adapterContract(name, koaAdapter(framework, false), { describe, test })
  adapterContract(`${name} with a router`, koaAdapter(framework, true), {
    describe,
    test,
    without: { 'counts all that has no route together': 'a middleware behind the router may answer what the router does not know' },
  })
}

for (const [name, framework] of FRAMEWORKS.slice(0, 1)) {
  adapterContract(`${name} with a store`, koaAdapter(framework, false), { describe, test: test.concurrent, store: memoryStore })
}
