#!/usr/bin/env node
// Runs before a package is published, and stops npm. npm would publish the repository's manifest, with versions such as `workspace:^` and
// with paths to sources. pnpm writes the users' manifest, with the catalog and `src/pnpmfile.cjs`.
const agent = process.env['npm_config_user_agent'] ?? ''
if (!agent.startsWith('pnpm/')) {
  console.error('Published with npm, this package could not be installed. Use `pnpm publish`, as .github/workflows/release.yml does.')
  process.exit(1)
}
