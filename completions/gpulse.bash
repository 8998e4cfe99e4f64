# bash completion for gpulse
_gpulse() {
  local word="$2" before="$3" verb="status" w
  for w in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$w" in status|metrics|doctor|completion) verb="$w"; break;; esac
  done
  case "$before" in
    --columns|-c) COMPREPLY=($(compgen -W "index uuid name vendor architecture pci_bus_id serial vbios driver_version gpu_instance compute_instance utilization memory_utilization encoder_utilization decoder_utilization jpeg_utilization ofa_utilization sm_active sm_occupancy tensor_active dram_active fp64_active fp32_active fp16_active integer_active graphics_active memory_used memory_total memory_free memory_reserved memory_percent memory_unattributed memory_unified bar1_used bar1_total temperature memory_temperature temperature_limit fan_speed power_draw power_limit power_default_limit energy clock_sm clock_memory clock_graphics clock_video clock_sm_max clock_memory_max pstate throttle_reasons pcie_rx pcie_tx pcie_gen pcie_width pcie_gen_max pcie_width_max pcie_replays nvlink_rx nvlink_tx ecc_corrected ecc_uncorrected remapped_rows xid_last compute_mode persistence_mode mig_mode display_active" -- "${word##*,}")); return;;
    --watch|-w) COMPREPLY=(); return;;
    --gpu|-i) COMPREPLY=($(compgen -W "visible" -- "${word##*,}")); return;;
    --source) COMPREPLY=($(compgen -W "auto nvidia demo replay:" -- "${word##*,}")); return;;
    --color) COMPREPLY=($(compgen -W "auto always never" -- "${word##*,}")); return;;
  esac
  case "$verb" in
    status) COMPREPLY=($(compgen -W "--processes -p --columns -c --watch -w --json --gpu -i --source --demo --color --help -h status metrics doctor completion" -- "$word"));;
    metrics) COMPREPLY=($(compgen -W "--json --help -h index uuid name vendor architecture pci_bus_id serial vbios driver_version gpu_instance compute_instance utilization memory_utilization encoder_utilization decoder_utilization jpeg_utilization ofa_utilization sm_active sm_occupancy tensor_active dram_active fp64_active fp32_active fp16_active integer_active graphics_active memory_used memory_total memory_free memory_reserved memory_percent memory_unattributed memory_unified bar1_used bar1_total temperature memory_temperature temperature_limit fan_speed power_draw power_limit power_default_limit energy clock_sm clock_memory clock_graphics clock_video clock_sm_max clock_memory_max pstate throttle_reasons pcie_rx pcie_tx pcie_gen pcie_width pcie_gen_max pcie_width_max pcie_replays nvlink_rx nvlink_tx ecc_corrected ecc_uncorrected remapped_rows xid_last compute_mode persistence_mode mig_mode display_active" -- "$word"));;
    doctor) COMPREPLY=($(compgen -W "--report --source --demo --color --help -h" -- "$word"));;
    completion) COMPREPLY=($(compgen -W "--help -h bash zsh fish" -- "$word"));;
  esac
}
complete -o default -F _gpulse gpulse
