import { memoryStore } from '@weir/core'
import { adapterContract } from '@weir/testing'
import { describe, test } from 'vitest'
import { honoAdapter } from './adapter.ts'
import { NEWEST, without } from './frameworks.ts'

adapterContract(NEWEST.name, honoAdapter(NEWEST), { describe, test, without })
adapterContract(`${NEWEST.name} with a store`, honoAdapter(NEWEST), { describe, test: test.concurrent, store: memoryStore, without })
