export { Hub } from './hub.ts'
export { connectToHub, memoryStore } from './memory-store.ts'
