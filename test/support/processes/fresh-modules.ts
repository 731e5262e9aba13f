import { vi } from 'vitest';

// A worker goes on to the next file with the libraries that it has loaded. What is ours is each file's own.
vi.resetModules();
