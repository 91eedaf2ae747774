// States of the storage: `sync`, bookmarks of them, and the way back to one. These are the only promises of the storage that
// wait for something from outside.
export default function (native, internals) {
  internals.load('encoding');
  const ask = async op => internals.utf8Decode(await internals.wait(op));

  internals.storageHistory = {
    sync: () => internals.wait(native.sync()),
    async getCurrentBookmark() {
      native.check('getCurrentBookmark');
      return await ask(native.bookmark(0));
    },
    getBookmarkForTime: time => ask(native.at(time)),
    async onNextSessionRestoreBookmark(bookmark) {
      native.check('onNextSessionRestoreBookmark');
      const position = await ask(native.find(bookmark));
      native.check('onNextSessionRestoreBookmark');
      return await ask(native.bookmark(native.wish(position)));
    },
  };
}
