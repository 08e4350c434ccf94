/*
 * If the package is missing, the error of Node.js shows the path of this file. Its name shows how to install the package.
 */
export { metrics } from '@opentelemetry/api'
