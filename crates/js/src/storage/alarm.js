// The alarm: `getAlarm`, `setAlarm` and `deleteAlarm` of a storage and of a transaction, and the run of the handler.
export default function (native, internals) {
  /** A time in milliseconds. Numbers lose their fraction; every time that a `Date` can hold is one. */
  function timeOf(value, wrongType) {
    const isDate = value instanceof Date;
    if (!isDate && typeof value !== 'number') throw wrongType();
    const time = Math.trunc(isDate ? value.getTime() : value);
    if (!(Math.abs(time) <= 8.64e15)) {
      throw new TypeError('The value cannot be converted because it is not a valid Date.');
    }
    return time;
  }

  internals.timeOf = timeOf;
  internals.alarmOperations = ({ checkOptions, wrongType }, of, enter) => ({
    async getAlarm(options) {
      enter(this, 'getAlarm');
      checkOptions(options, 'getAlarm', of, 1, 'GetAlarmOptions');
      return native.get() ?? null;
    },
    async setAlarm(scheduledTime, options) {
      enter(this, 'setAlarm');
      const time = timeOf(scheduledTime, () => wrongType('setAlarm', of, 1, 'date'));
      checkOptions(options, 'setAlarm', of, 2, 'SetAlarmOptions');
      if (time <= 0) throw new TypeError('setAlarm() cannot be called with an alarm time <= 0');
      if (!internals.mayHaveAlarm()) {
        throw new TypeError('Your Durable Object class must have an alarm() handler in order to call setAlarm()');
      }
      native.set(time);
    },
    async deleteAlarm(options) {
      enter(this, 'deleteAlarm');
      checkOptions(options, 'deleteAlarm', of, 1, 'SetAlarmOptions');
      native.delete();
    },
  });

  class AlarmInvocationInfo {
    constructor(key, { scheduledTime, retryCount }) {
      if (key !== internals) throw new TypeError('Illegal constructor');
      this.scheduledTime = scheduledTime;
      this.retryCount = retryCount;
      this.isRetry = retryCount > 0;
    }
  }
  internals.define(AlarmInvocationInfo.prototype, { [Symbol.toStringTag]: 'AlarmInvocationInfo' });

  /** Runs the handler. The turn in which it ends consumes the alarm, in one transaction with what else it wrote. */
  internals.runAlarm = async (event, instance, alarm) => {
    const { alarm: handler } = instance;
    if (typeof handler !== 'function') return native.ended(event, false);
    await handler.call(instance, new AlarmInvocationInfo(internals, alarm));
    native.consume();
    native.ended(event, true);
  };
}
