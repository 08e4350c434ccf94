/** The parts of a connection that Weir reads. The other end is the client, or the last proxy. */
export interface Connection {
  readonly remoteAddress?: string | undefined
  readonly localAddress?: string | undefined
  readonly destroyed?: boolean | undefined
}

/**
 * Reads the requests of an adapter's framework. Each adapter has one constant object. The rules and keys of a policy use only this
 * interface, so core depends on no framework.
 */
export interface RequestReader<Req> {
  /** Names of options that the adapter handles itself and does not pass on. Messages about misspelled options suggest them. */
  readonly options?: readonly string[]
  /** The default of the option `afterFreeze`: `'sync'` for an adapter whose applications often run as functions. */
  readonly afterFreeze?: 'sync' | 'continue'
  /**
   * Whether applications are usually bundled. Builds and hot reloads then evaluate their modules too, so a throttler connects at the first
   * request, and during development it outlives a reload.
   */
  readonly bundled?: boolean
  /** The method in capitals. */
  method(request: Req): string
  /** The request's target or path as the client sent it: with mount prefix, still percent-encoded. Weir cuts off a query. */
  path(request: Req): string
  /**
   * The pattern of the matched route with its mount prefix, e.g. `/users/:id`. Undefined if no route is known yet. A value that does not
   * start with `/` names a group of requests and is a key without the method, e.g. `(not found)`.
   */
  route(request: Req): string | undefined
  /**
   * The path or target with which a middleware replaced the client's. The router uses it. Undefined if it was not replaced. Policies apply
   * if their `match` covers either.
   */
  rewritten?(request: Req): string | undefined
  /**
   * The paths that the framework's router may read in a target. Needed for route keys of requests without a known route: use
   * `parseurlReadings`, or `anyReadings` for an unknown router. Without it, odd targets share one key. `whole` is the target with its
   * query.
   */
  readonly readings?: (target: string, whole: string) => ReadonlySet<string> | undefined
  /**
   * The pattern of the matched route, for frameworks whose matching Weir can't reproduce. Undefined if no route was matched. A policy whose
   * `match` covers the pattern applies, whatever the target is.
   */
  pattern?(request: Req): string | undefined
  /** Example paths for all paths that match a pattern. `%01` stands for the value of a parameter. Must be pure. */
  samples?(pattern: string): readonly string[]
  /** The client's address by the framework's own proxy settings. Undefined if it is unknown. */
  ip(request: Req): string | undefined
  /** The connection of the request, to detect forwarding headers that the framework ignores. Undefined if there is none. */
  socket?(request: Req): Connection | undefined
  /**
   * The framework's proxy setting if it lets clients choose their address, e.g. `app.set("trust proxy", true)`, with the setting to use
   * instead. Undefined if there is none. It is called at the first request.
   */
  forgeable?(request: Req): string | undefined
  /**
   * Sentences for a warning that explain how to make the framework trust a proxy, e.g. `Call app.set("trust proxy", "10.0.0.0/8").`
   * `withoutAddress` is true if the connection has no address, such as a Unix socket. Default: a sentence that mentions the framework's
   * proxy setting.
   */
  howToTrust?(request: Req, withoutAddress: boolean): string
  /** A request header. `name` is in lower case. Several values are joined as the framework does. */
  header(request: Req, name: string): string | undefined
}
