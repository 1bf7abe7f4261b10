import type { Socket } from 'node:net';
import type { DecodeJob } from './decode-job.ts';

/** A body that waits to be decoded. It is let go when its caller hangs up, since the budget no longer counts it then. */
export class WaitingJob {
  readonly #job: { bytes: DecodeJob['bytes'] | null } & Omit<DecodeJob, 'bytes'>;
  readonly #socket: Socket;

  constructor(job: DecodeJob, socket: Socket) {
    this.#job = job;
    this.#socket = socket;
    socket.once('close', this.#letGo);
  }

  /** The job, only once; null if the caller has hung up. */
  take(): DecodeJob | null {
    this.#socket.off('close', this.#letGo);
    const job = this.#job;
    const { bytes } = job;
    if (bytes === null || this.#socket.destroyed) {
      this.#letGo();
      return null;
    }
    const taken = { ...job, bytes };
    this.#letGo();
    return taken;
  }

  readonly #letGo = (): void => {
    this.#job.bytes = null;
  };
}
