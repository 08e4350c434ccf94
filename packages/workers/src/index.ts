export { type DurableObjectStoreOptions, durableObjectStore } from './store.ts'
export { WeirHub } from './weir-hub.ts'
