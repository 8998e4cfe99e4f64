// The names of the panels, apart from their code: the lab lists them before any of it is loaded.

export const PANELS = {
  overview: "GPU overview",
  utilization: "GPU utilization",
  memory: "GPU memory",
  resources: "GPU resources",
  power: "Power and temperature",
  pcie: "PCIe throughput",
  nvlink: "NVLink throughput",
  machine: "Machine resources",
  processes: "GPU processes",
  kernels: "Notebooks on GPUs",
  events: "GPU events",
  why: "Why is my GPU slow?",
  gpu: "One GPU",
} as const;

export type PanelName = keyof typeof PANELS;

/** Those that the sidebar and the command palette list; one GPU is opened from its card. */
export const LISTED = (Object.keys(PANELS) as PanelName[]).filter((name) => name !== "gpu");
