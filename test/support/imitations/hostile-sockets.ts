import type { Reply } from '../../service/service.ts';

/** The connection breaks before a byte of the answer. */
export const cut: Reply = (response) => void response.destroy();

/** The connection breaks when some of the answer has arrived. */
export const cutInBody: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
  response.write('{"data":{"persons":', () => response.destroy());
};

export const silence: Reply = () => {};

/** Headers and the beginning of a body, and nothing more. */
export const unfinished: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.write('{"data":');
};

/** An endless body, one byte at a time. */
export const trickle: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const drops = setInterval(() => response.write(' '), 5);
  response.once('close', () => clearInterval(drops));
};

/** Endless interim answers, and no final one. */
export const hints: Reply = (response) => {
  const more = setInterval(() => response.writeEarlyHints({ link: '</x>; rel=preload' }), 5);
  response.once('close', () => clearInterval(more));
};

/** An endless body, as fast as it is read. */
export const flood: Reply = (response) => {
  const megabyte = Buffer.alloc(1024 * 1024, ' ');
  const pour = () => {
    while (!response.destroyed && response.write(megabyte));
  };
  response.writeHead(200, { 'content-type': 'application/json' }).on('drain', pour);
  pour();
};
