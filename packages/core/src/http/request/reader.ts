/** The parts of a connection that are read: the client's, or that of the last proxy. */
export interface Connection {
  readonly remoteAddress?: string | undefined
  readonly localAddress?: string | undefined
  readonly destroyed?: boolean | undefined
}

/**
 * How an adapter reads its framework's request. One constant object for each adapter; the rules and keys of a policy are
 * written against it, so that core knows no framework.
 */
export interface RequestReader<Req> {
  /** Names of options that the adapter has taken out of those it passes on. Misspelled ones are recognized by it. */
  readonly options?: readonly string[]
  /** The method in capitals. */
  method(request: Req): string
  /** The request's target or path as the client sent it: mount prefix included, still percent-encoded. A query is cut off. */
  path(request: Req): string
  /**
   * The pattern of the matched route with its mount prefix, e.g. `/users/:id`; undefined where none is known yet. A
   * value that does not start with `/` names a group of requests and is a key without the method, e.g. `(not found)`.
   */
  route(request: Req): string | undefined
  /**
   * The path or target that a middleware put in place of the client's, which is what the router goes by; undefined where none
   * did. Policies that match either apply.
   */
  rewritten?(request: Req): string | undefined
  /**
   * The paths that the framework's router might take a target for, where requests without a known route are to have route keys:
   * `parseurlReadings`, or `anyReadings` for a router of which nothing is known. Without it, odd targets share one key.
   * `whole` is the target with its query.
   */
  readonly readings?: (target: string, whole: string) => ReadonlySet<string> | undefined
  /**
   * The pattern of the matched route, for frameworks that have matched it in ways of their own; undefined where none was
   * matched. A policy whose `match` covers the pattern applies, whatever the target looked like.
   */
  pattern?(request: Req): string | undefined
  /** Paths that stand for all that match a pattern; `%01` stands for what a parameter may be. Pure. */
  samples?(pattern: string): readonly string[]
  /** The client's address by the framework's own proxy settings; undefined when it is unknown. */
  ip(request: Req): string | undefined
  /** The connection of the request, so that forwarding headers which the framework ignores are noticed; undefined where there is none. */
  socket?(request: Req): Connection | undefined
  /**
   * Asked at the first request: the framework's proxy setting under which clients can choose their address, e.g.
   * `app.set("trust proxy", true)`, and what to set instead; undefined when there is none.
   */
  forgeable?(request: Req): string | undefined
  /**
   * How to have the framework trust a proxy, as sentences for a warning, e.g. `Call app.set("trust proxy", "10.0.0.0/8").`;
   * `withoutAddress` for a proxy whose connection has no address, such as a Unix socket. Default: no more than that there is such a setting.
   */
  howToTrust?(request: Req, withoutAddress: boolean): string
  /** A request header; `name` is in lower case. Several values are joined as the framework does. */
  header(request: Req, name: string): string | undefined
}
