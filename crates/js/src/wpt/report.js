// Collects what the harness reports: `[name, failure]` of each subtest, null where it passes.
(() => {
  const subtests = [];
  const stringify = JSON.stringify;
  const wellFormed = text => String(text).toWellFormed();
  const outcome = { isDone: false, json: () => stringify(subtests), stop: timeout };
  add_completion_callback((tests, status) => {
    const names = ['', 'fails', 'does not end', 'was not run', 'needs something that is not there'];
    for (const { name, status, message } of tests) {
      subtests.push([wellFormed(name), status === 0 ? null : `${names[status]}: ${wellFormed(message)}`]);
    }
    if (status.status !== 0) subtests.push(['(the file)', `${names[status.status]}: ${wellFormed(status.message)}`]);
    outcome.isDone = true;
  });
  return outcome;
})
