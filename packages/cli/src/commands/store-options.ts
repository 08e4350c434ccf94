import { type Command, Option } from 'commander'
import { ADDRESSES } from '../cluster/open-store.ts'

/** The address and the namespace of the store. */
export interface StoreOptions {
  readonly store: string
  readonly namespace: string
}

/** Adds the options of commands that use a store. */
export function withStore(command: Command): Command {
  return command
    .addOption(new Option('--store <address>', `the store: ${ADDRESSES}`).env('WEIR_STORE').makeOptionMandatory())
    .option('--namespace <text>', 'beginning of the keys in Redis and etcd. In PostgreSQL the schema, which must exist', 'weir')
}
