/** What is typed before a command: in this repository, where npm brings the right Node, or where the package is installed. */
export const COMMAND_LINE = import.meta.url.endsWith('.ts')
  ? 'npm start --'
  : 'npx recruiting-subgraph';
