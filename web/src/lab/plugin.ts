// The plugin: what JupyterLab and Notebook know of gpulse before anything is shown. All else is loaded at the first use.

import { ILabShell, ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ICommandPalette, IThemeManager, WidgetTracker } from "@jupyterlab/apputils";
import { ILauncher } from "@jupyterlab/launcher";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { IStatusBar } from "@jupyterlab/statusbar";
import { LabIcon } from "@jupyterlab/ui-components";
import { Widget } from "@lumino/widgets";
import type { Board } from "./board.ts";
import { LISTED, PANELS, type PanelName } from "./names.ts";
import type { Session } from "./room.ts";

const ID = "gpulse:plugin";
const OPEN = "gpulse:open";
const EDIT = "settingeditor:open";
const CATEGORY = "GPU (gpulse)";
const UNANSWERED = "The Jupyter server does not answer for gpulse. `jupyter server extension list` says whether its extension is enabled.";
const PULSE =
  '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24"><path class="jp-icon3" fill="#616161" d="M4 4h16a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2V6c0-1.1.9-2 2-2zm0 2v12h16V6H4z"/><path class="jp-icon3" fill="#616161" d="M5.5 13.2v-1.7h3l1.9-4.1 3.1 8.4 1.5-4.3h3.5v1.7h-2.3l-2.6 6-3.2-8.4-1 2.4z"/></svg>';

type Room = typeof import("./room.ts");
interface Begun {
  room: Room;
  session: Session;
}

/** A widget that passes on whether it can be seen. */
class Place extends Widget {
  heard: (visible: boolean) => void = () => {};
  board: Board | undefined;

  constructor(readonly name: string) {
    super();
    this.addClass("gpulse-place");
  }
  protected override onAfterAttach(message: unknown): void {
    super.onAfterAttach(message);
    this.heard(this.isVisible);
  }
  protected override onAfterShow(message: unknown): void {
    super.onAfterShow(message);
    this.heard(true);
  }
  protected override onAfterHide(message: unknown): void {
    super.onAfterHide(message);
    this.heard(false);
  }
  protected override onBeforeDetach(message: unknown): void {
    super.onBeforeDetach(message);
    this.heard(false);
  }
  protected override onCloseRequest(message: unknown): void {
    super.onCloseRequest(message);
    this.dispose();
  }
}

class Extension {
  private readonly icon = new LabIcon({ name: "gpulse:pulse", svgstr: PULSE });
  private readonly tracker = new WidgetTracker<Place>({ namespace: "gpulse" });
  private readonly boards = new Set<Board>();
  private begun: Promise<Begun> | undefined;
  private settings: ISettingRegistry.ISettings | undefined;

  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly lab: ILabShell | null,
  ) {}

  /** Take the settings, which may come later than the first panel. */
  async configure(registry: ISettingRegistry): Promise<ISettingRegistry.ISettings> {
    this.settings = await registry.load(ID);
    const { settings } = this;
    await this.begun?.then(({ session }) => session.follow(settings)).catch(() => {}); // what is loaded later takes them itself
    return this.settings;
  }

  /** Return the rest and its session, loaded and made at the first use; what failed is tried again at the next. */
  begin(): Promise<Begun> {
    return (this.begun ??= this.load().catch((error: unknown) => {
      this.begun = undefined;
      throw error;
    }));
  }

  /** Load the rest from the server extension, which has the files of the page of `gpulse serve` that it shares. */
  private async load(): Promise<Begun> {
    const { serverSettings } = this.app.serviceManager;
    const room = (await import(`${serverSettings.baseUrl}static/gpulse/room.js`)) as Room;
    await room.dress();
    const session = new room.Session(serverSettings, {
      open: (name, args) => void this.app.commands.execute(OPEN, { name, ...args }),
      kernels: new room.Documents(this.app),
      editSettings: this.app.commands.hasCommand(EDIT) ? () => void this.app.commands.execute(EDIT, { query: "gpulse" }) : undefined,
    });
    if (this.settings) session.follow(this.settings);
    return { room, session };
  }

  command(palette: ICommandPalette | null, launcher: ILauncher | null): void {
    this.app.commands.addCommand(OPEN, {
      label: (args) => (args["palette"] ? `Open ${title(args)}` : title(args)),
      caption: "What your GPUs are really doing, and why",
      icon: this.icon,
      execute: (args) => this.open(String(args["name"] ?? "overview"), args),
    });
    for (const name of LISTED) palette?.addItem({ command: OPEN, category: CATEGORY, args: { name, palette: true } });
    launcher?.add({ command: OPEN, category: "Other", rank: 1, args: { name: "overview" } });
  }

  /** Put the icon into the left sidebar. */
  sidebar(restorer: ILayoutRestorer | null): void {
    const side = new Place("side");
    side.id = "gpulse-side";
    side.title.icon = this.icon;
    side.title.caption = "GPUs";
    if (!this.lab) side.title.label = "GPUs"; // Notebook has no icons there
    side.heard = (visible) => {
      if (!visible) return;
      side.heard = () => {};
      void this.furnish(side, {});
    };
    this.app.shell.add(side, "left", { rank: 620, type: "gpulse" });
    restorer?.add(side, side.id);
  }

  restore(restorer: ILayoutRestorer | null): void {
    void restorer?.restore(this.tracker, {
      command: OPEN,
      args: (widget) => this.argumentsOf(widget as Place),
      name: (widget) => widget.id,
    });
  }

  themed(): void {
    for (const board of this.boards) board.themed();
  }

  /** Put utilization and memory of the current kernel's GPUs into the status bar. */
  async status(bar: IStatusBar, settings: ISettingRegistry.ISettings | undefined): Promise<void> {
    const place = new Widget();
    bar.registerStatusItem("gpulse:status", { item: place, align: "right", rank: 900 });
    let item: InstanceType<Room["StatusItem"]> | undefined;
    const follow = async () => {
      const on = (settings?.composite["statusBar"] ?? true) !== false;
      const kernel = this.currentKernel();
      if (!item && (!on || kernel === undefined)) return;
      if (!item) {
        const begun = await this.begin().catch(() => clearInterval(timer)); // tried again with the next document
        if (!begun) return;
        item ??= new begun.room.StatusItem(begun.session);
        place.node.append(item.element);
      }
      item.follow(this.currentKernel());
    };
    this.app.shell.currentChanged?.connect(() => void follow());
    const timer = setInterval(() => !document.hidden && void follow(), 2000); // kernels start and end without telling the shell
    void follow();
  }

  private kernelWidget: Widget | null = null;

  /** Return the kernel of the document in front; that of the last one while a panel is. */
  private currentKernel(): string | undefined {
    const { currentWidget } = this.app.shell;
    if (currentWidget && "sessionContext" in currentWidget) this.kernelWidget = currentWidget;
    if (this.kernelWidget?.isDisposed) this.kernelWidget = null;
    const holder = this.kernelWidget as { sessionContext?: { session?: { kernel?: { id?: string } | null } | null } } | null;
    return holder?.sessionContext?.session?.kernel?.id;
  }

  private open(name: string, args: Record<string, unknown>): Place {
    const known = (name in PANELS ? name : "overview") as PanelName;
    const id = known === "gpu" ? `gpulse-gpu-${String(args["gpu"] ?? "")}` : `gpulse-${known}`;
    const there = this.tracker.find((widget) => widget.id === id);
    const place = there ?? this.place(known, id, args);
    this.app.shell.activateById(id);
    return place;
  }

  private place(name: PanelName, id: string, args: Record<string, unknown>): Place {
    const place = new Place(name);
    place.id = id;
    place.title.label = name === "gpu" ? `GPU ${String(args["gpu"] ?? "").slice(0, 12)}` : PANELS[name];
    place.title.icon = this.icon;
    place.title.closable = true;
    this.app.shell.add(place, this.lab ? "main" : "right", { rank: 620, type: "gpulse" });
    void this.tracker.add(place);
    void this.furnish(place, args);
    return place;
  }

  private async furnish(place: Place, args: Record<string, unknown>): Promise<void> {
    const begun = await this.begin().catch(() => undefined);
    if (place.isDisposed) return;
    if (!begun) return void (place.node.textContent = UNANSWERED);
    const { room, session } = begun;
    const board = room.fill(place, session, place.name, args, () => void this.tracker.save(place));
    place.board = board;
    this.boards.add(board);
    place.disposed.connect(() => this.boards.delete(board));
  }

  private argumentsOf(place: Place): object {
    const address = place.board?.address;
    return { name: place.name, gpu: address?.gpu ?? place.id.replace("gpulse-gpu-", ""), metrics: address?.metrics ?? [] };
  }
}

function title(args: Record<string, unknown>): string {
  const name = String(args["name"] ?? "overview");
  return name in PANELS ? PANELS[name as PanelName] : "GPUs";
}

const plugin: JupyterFrontEndPlugin = {
  id: ID,
  description: "What your GPUs are really doing, and which notebook holds their memory.",
  autoStart: true,
  optional: [ILabShell, ILayoutRestorer, ICommandPalette, ILauncher, ISettingRegistry, IThemeManager, IStatusBar],
  activate: (
    app: JupyterFrontEnd,
    lab: ILabShell | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    settings: ISettingRegistry | null,
    themes: IThemeManager | null,
    bar: IStatusBar | null,
  ) => {
    const extension = new Extension(app, lab);
    extension.command(palette, launcher);
    extension.sidebar(restorer);
    extension.restore(restorer);
    themes?.themeChanged.connect(() => extension.themed());
    // Notebook 7 fails when an extension loads its settings earlier than this.
    void app.restored.then(async () => {
      const found = settings ? await extension.configure(settings).catch(() => undefined) : undefined;
      if (bar) await extension.status(bar, found);
    });
  },
};

export default [plugin];
