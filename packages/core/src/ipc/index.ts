export { type IpcService, serveIpc } from './serve.ts'
export { type IpcStoreOptions, ipcStore } from './store.ts'
