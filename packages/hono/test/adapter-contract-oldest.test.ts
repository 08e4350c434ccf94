import { adapterContract } from '@weir/testing'
import { describe, test } from 'vitest'
import { honoAdapter } from './adapter.ts'
import { OLDEST, withoutOldest } from './frameworks.ts'

// In a process of its own: each version of the server puts its own Request and Response in place of those of Node.js.
adapterContract(OLDEST.name, honoAdapter(OLDEST), { describe, test, without: withoutOldest })
