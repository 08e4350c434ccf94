export { type IpcService, type ServeIpcOptions, serveIpc } from './serve.ts'
export { type IpcStoreOptions, ipcStore } from './store.ts'
