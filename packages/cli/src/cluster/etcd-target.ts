import { UsageError } from '../terminal/usage-error.ts'

/**
 * Reads the addresses of etcd's members, separated by commas. The first user name and password apply to all members.
 *
 * @throws UsageError for an address that isn't a URL
 */
export function etcdTarget(address: string): { endpoints: readonly string[]; username?: string; password?: string } {
  let user: { username: string; password: string } | undefined
  const endpoints = address.split(',').map((one) => {
    try {
      const { protocol, host, username, password } = new URL(one)
      if (username !== '') user ??= { username: decodeURIComponent(username), password: decodeURIComponent(password) }
      return `${protocol}//${host}`
    } catch {
      // The message doesn't show the address, because it may contain a password.
      throw new UsageError('The address of etcd can not be read. Use one such as http://host:2379 or http://one:2379,http://two:2379.')
    }
  })
  return { endpoints, ...user }
}
