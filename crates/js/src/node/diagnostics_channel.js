// `node:diagnostics_channel`: named channels, and groups of them that trace a call.
import { provide } from 'node:internal/base';

const channels = new Map();

function requireFunction(value, method, on, position) {
  if (typeof value === 'function') return;
  throw new TypeError(`Failed to execute '${method}' on '${on}': parameter ${position} is not of type 'function'.`);
}

export class Channel {
  #name;
  #subscribers = [];
  #stores = new Map();
  constructor(key, name) {
    if (key !== channels) throw new TypeError('Illegal constructor');
    this.#name = name;
  }
  get hasSubscribers() {
    return this.#subscribers.length > 0;
  }
  publish(message) {
    for (const subscriber of this.#subscribers) {
      try {
        subscriber(message, this.#name);
      } catch (error) {
        reportError(error);
      }
    }
  }
  subscribe(subscriber) {
    requireFunction(subscriber, 'subscribe', 'Channel', 1);
    this.#subscribers = [...this.#subscribers, subscriber];
  }
  unsubscribe(subscriber) {
    this.#subscribers = this.#subscribers.filter(each => each !== subscriber);
  }
  bindStore(storage, transform = undefined) {
    this.#stores.set(storage, transform);
  }
  unbindStore(storage) {
    this.#stores.delete(storage);
  }
  runStores(message, callback, self = undefined, ...args) {
    const run = () => {
      this.publish(message);
      return Reflect.apply(callback, self, args);
    };
    const wrapped = [...this.#stores].reduce((inner, [storage, transform]) =>
      () => storage.run(transform === undefined ? message : transform(message), inner), run);
    return wrapped();
  }
}

export function channel(name) {
  if (!channels.has(name)) channels.set(name, new Channel(channels, name));
  return channels.get(name);
}

export const hasSubscribers = name => channels.get(name)?.hasSubscribers ?? false;

export function subscribe(name, subscriber) {
  requireFunction(subscriber, 'subscribe', 'DiagnosticsChannelModule', 2);
  channel(name).subscribe(subscriber);
}

export function unsubscribe(name, subscriber) {
  channels.get(name)?.unsubscribe(subscriber);
}

const PHASES = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'];

export class TracingChannel {
  constructor(key, given) {
    if (key !== channels) throw new TypeError('Illegal constructor');
    for (const phase of PHASES) {
      this[phase] = typeof given === 'string' ? channel(`tracing:${given}:${phase}`) : given[phase];
    }
  }
  get hasSubscribers() {
    return PHASES.some(phase => this[phase]?.hasSubscribers);
  }
  subscribe(subscribers) {
    for (const phase of PHASES) if (subscribers[phase] !== undefined) this[phase]?.subscribe(subscribers[phase]);
  }
  unsubscribe(subscribers) {
    for (const phase of PHASES) if (subscribers[phase] !== undefined) this[phase]?.unsubscribe(subscribers[phase]);
  }
  // The part of a call that is over when it returns, from `start` to `end`.
  #traced(context, call) {
    return this.start.runStores(context, () => {
      try {
        return call();
      } catch (error) {
        context.error = error;
        this.error.publish(context);
        throw error;
      } finally {
        this.end.publish(context);
      }
    });
  }
  traceSync(callback, context = {}, self = undefined, ...args) {
    return this.#traced(context, () => {
      const result = Reflect.apply(callback, self, args);
      context.result = result;
      return result;
    });
  }
  tracePromise(callback, context = {}, self = undefined, ...args) {
    const settled = (key, value) => {
      context[key] = value;
      if (key === 'error') this.error.publish(context);
      this.asyncStart.publish(context);
      this.asyncEnd.publish(context);
    };
    return this.#traced(context, () => {
      const promise = Promise.resolve(Reflect.apply(callback, self, args));
      return promise.then(value => {
        settled('result', value);
        return value;
      }, error => {
        settled('error', error);
        throw error;
      });
    });
  }
  traceCallback(callback, position = -1, context = {}, self = undefined, ...args) {
    const inner = args.at(position);
    const wrapped = (...results) => {
      const [error, value] = results;
      if (error) {
        context.error = error;
        this.error.publish(context);
      } else {
        context.result = value;
      }
      this.asyncStart.runStores(context, () => {
        try {
          return inner(...results);
        } finally {
          this.asyncEnd.publish(context);
        }
      });
    };
    args.splice(position, 1, wrapped);
    return this.#traced(context, () => Reflect.apply(callback, self, args));
  }
}

export const tracingChannel = given => new TracingChannel(channels, given);

export default provide('node:diagnostics_channel', {
  Channel, TracingChannel, channel, hasSubscribers, subscribe, tracingChannel, unsubscribe,
});
