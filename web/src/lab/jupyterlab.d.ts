// The parts of JupyterLab 4 that the extension uses, as its own type declarations have them. The packages themselves are never
// installed or bundled: JupyterLab hands them over when it loads the extension.

declare module "@lumino/widgets" {
  export interface Signal<Sender, Arguments> {
    connect(slot: (sender: Sender, args: Arguments) => void, thisArg?: unknown): boolean;
    disconnect(slot: (sender: Sender, args: Arguments) => void, thisArg?: unknown): boolean;
  }
  export interface Title {
    label: string;
    caption: string;
    closable: boolean;
    icon: unknown;
  }
  export class Widget {
    constructor(options?: { node?: HTMLElement });
    id: string;
    readonly node: HTMLElement;
    readonly title: Title;
    readonly isVisible: boolean;
    readonly isAttached: boolean;
    readonly isDisposed: boolean;
    readonly disposed: Signal<this, void>;
    addClass(name: string): void;
    close(): void;
    dispose(): void;
    setHidden(hidden: boolean): void;
    protected onAfterAttach(message: unknown): void;
    protected onBeforeDetach(message: unknown): void;
    protected onAfterShow(message: unknown): void;
    protected onAfterHide(message: unknown): void;
    protected onCloseRequest(message: unknown): void;
  }
}

declare module "@lumino/coreutils" {
  export class Token<T> {
    readonly name: string;
    private _type: T;
  }
}

declare module "@jupyterlab/application" {
  import type { Token } from "@lumino/coreutils";
  import type { Signal, Widget } from "@lumino/widgets";

  export interface CommandOptions {
    label: string | ((args: Record<string, unknown>) => string);
    caption?: string;
    icon?: unknown;
    execute(args: Record<string, unknown>): unknown;
  }
  export interface Shell {
    readonly currentWidget: Widget | null;
    readonly currentChanged?: Signal<unknown, unknown>;
    add(widget: Widget, area: string, options?: Record<string, unknown>): void;
    activateById(id: string): void;
    widgets(area: string): Iterable<Widget>;
  }
  export interface KernelMessage {
    readonly header: { msg_id: string; msg_type: string; date: string };
    readonly parent_header: object;
    readonly content: Record<string, unknown>;
    readonly metadata: Record<string, unknown>;
  }
  export interface KernelConnection {
    readonly id: string;
    readonly anyMessage: Signal<KernelConnection, { msg: KernelMessage; direction: "send" | "recv" }>;
    interrupt(): Promise<void>;
    restart(): Promise<void>;
  }
  export interface JupyterFrontEnd {
    readonly shell: Shell;
    readonly restored: Promise<unknown>;
    readonly commands: { addCommand(id: string, options: CommandOptions): unknown; hasCommand(id: string): boolean; execute(id: string, args?: object): Promise<unknown> };
    readonly serviceManager: {
      readonly serverSettings: import("@jupyterlab/services").ServerConnection.ISettings;
      readonly kernels: { shutdown(id: string): Promise<void> };
      readonly sessions: { shutdown(id: string): Promise<void>; refreshRunning(): Promise<void> };
    };
  }
  export interface JupyterFrontEndPlugin {
    id: string;
    description?: string;
    autoStart?: boolean;
    requires?: unknown[];
    optional?: unknown[];
    activate(app: JupyterFrontEnd, ...services: never[]): unknown;
  }
  export interface ILayoutRestorer {
    restore(tracker: unknown, options: { command: string; args(widget: Widget): object; name(widget: Widget): string }): Promise<unknown>;
    add(widget: Widget, name: string): void;
  }
  export const ILayoutRestorer: Token<ILayoutRestorer>;
  export interface ILabShell extends Shell {
    readonly layoutModified: Signal<unknown, void>;
  }
  export const ILabShell: Token<ILabShell>;
}

declare module "@jupyterlab/apputils" {
  import type { Token } from "@lumino/coreutils";
  import type { Signal, Widget } from "@lumino/widgets";

  export interface ICommandPalette {
    addItem(item: { command: string; category: string; args?: object }): unknown;
  }
  export const ICommandPalette: Token<ICommandPalette>;
  export interface IThemeManager {
    readonly theme: string | null;
    readonly themeChanged: Signal<unknown, unknown>;
    isLight(name: string): boolean;
  }
  export const IThemeManager: Token<IThemeManager>;
  export class WidgetTracker<T extends Widget> {
    constructor(options: { namespace: string });
    add(widget: T): Promise<void>;
    save(widget: T): Promise<void>;
    find(fits: (widget: T) => boolean): T | undefined;
  }
  export namespace Dialog {
    function cancelButton(options?: object): object;
    function warnButton(options?: object): object;
  }
  export namespace Notification {
    interface Options {
      autoClose?: number | false;
      actions?: { label: string; callback: () => void; displayType?: string }[];
    }
    function warning(message: string, options?: Options): string;
    function info(message: string, options?: Options): string;
    function dismiss(id?: string): void;
  }
  export function showDialog(options: { title: string; body: string; buttons: object[] }): Promise<{ button: { accept: boolean } }>;
  export function showErrorMessage(title: string, error: unknown): Promise<void>;
}

declare module "@jupyterlab/launcher" {
  import type { Token } from "@lumino/coreutils";
  export interface ILauncher {
    add(item: { command: string; category: string; rank?: number; args?: object }): unknown;
  }
  export const ILauncher: Token<ILauncher>;
}

declare module "@jupyterlab/settingregistry" {
  import type { Token } from "@lumino/coreutils";
  import type { Signal } from "@lumino/widgets";
  export namespace ISettingRegistry {
    interface ISettings {
      readonly composite: Record<string, unknown>;
      readonly changed: Signal<unknown, void>;
      set(key: string, value: unknown): Promise<void>;
    }
  }
  export interface ISettingRegistry {
    load(plugin: string): Promise<ISettingRegistry.ISettings>;
  }
  export const ISettingRegistry: Token<ISettingRegistry>;
}

declare module "@jupyterlab/statusbar" {
  import type { Token } from "@lumino/coreutils";
  import type { Widget } from "@lumino/widgets";
  export interface IStatusBar {
    registerStatusItem(id: string, item: { item: Widget; align: string; rank?: number; isActive?: () => boolean }): unknown;
  }
  export const IStatusBar: Token<IStatusBar>;
}

declare module "@jupyterlab/services" {
  export namespace ServerConnection {
    interface ISettings {
      readonly baseUrl: string;
      readonly wsUrl: string;
      readonly token: string;
      readonly appendToken: boolean;
      readonly WebSocket: typeof WebSocket;
    }
    function makeRequest(url: string, init: RequestInit, settings: ISettings): Promise<Response>;
  }
}

declare module "@jupyterlab/ui-components" {
  export class LabIcon {
    constructor(options: { name: string; svgstr: string });
  }
}
