export { address, header } from '../decide/request-rule.ts'
export { type AccessList, type AddressList, addresses } from './request/address-list.ts'
export { paths } from './request/paths.ts'
