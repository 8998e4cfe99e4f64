// What JupyterLab loads first: a module-federation container, written by hand. Its whole contract is `init`, which receives the modules
// that the lab shares, and `get`, which returns the extension; the browser tests hold it against the oldest and the newest lab.
(() => {
  const names = [
    "@jupyterlab/application",
    "@jupyterlab/apputils",
    "@jupyterlab/launcher",
    "@jupyterlab/services",
    "@jupyterlab/settingregistry",
    "@jupyterlab/statusbar",
    "@jupyterlab/ui-components",
    "@lumino/widgets",
  ];
  const here = document.currentScript.src;
  const shared = {};
  let scope = {};

  /** Take the version that the lab itself uses: the one already loaded, else the first. */
  const version = (versions) => Object.values(versions).find((one) => one.loaded) ?? Object.values(versions)[0];

  async function take(name) {
    const found = scope[name] && version(scope[name]);
    if (found) shared[name] = (await found.get())();
  }

  const labs = (window._JUPYTERLAB = window._JUPYTERLAB || {});
  labs.gpulse = {
    shared,
    init: (given) => {
      scope = given;
    },
    get: async () => {
      await Promise.all(names.map(take));
      const plugin = await import(new URL("plugin.js", here).href);
      return () => ({ __esModule: true, default: plugin.default }); // the lab writes into it, and a module is frozen
    },
  };
})();
