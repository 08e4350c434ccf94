import { adapterContract } from '@weir/testing'
import { describe, test } from 'vitest'
import { honoAdapter } from './adapter.ts'
import { OLDEST, withoutOldest } from './frameworks.ts'

// A separate file, and so a separate process, because each version of the server replaces the global Request and Response of Node.js.
adapterContract(OLDEST.name, honoAdapter(OLDEST), { describe, test, without: withoutOldest })
