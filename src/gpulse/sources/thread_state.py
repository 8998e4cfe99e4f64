"""What a thread is doing, from its state in /proc/PID/stat and the kernel function in which it waits (/proc/PID/wchan)."""

from __future__ import annotations

# Beginnings of kernel functions and what a thread waits for in them; the longest one that fits decides.
_WAITS = {
    "lock": ("futex", "do_futex"),
    "sleep": ("hrtimer_nanosleep", "do_nanosleep", "common_nsleep"),
    "poll": ("ep_poll", "do_epoll", "poll_schedule", "do_poll", "do_sys_poll", "do_select", "io_cqring_wait"),
    "pipe": ("pipe_", "anon_pipe_", "wait_for_partner"),
    "driver": ("nv", "_nv", "uvm", "os_acquire_", "rm_", "amdgpu", "amdkfd", "kfd_", "ttm_", "dma_fence", "dma_resv", "xe_", "i915_"),
    "disk": (
        *("io_schedule", "folio_wait", "wait_on_page", "__folio_lock", "__lock_page", "filemap_", "rq_qos_wait", "wbt_wait"),
        *("blk_", "bio_", "submit_bio", "wait_on_buffer", "__wait_on_buffer", "balance_dirty", "swap_", "nvme", "nvfs", "md_"),
        *("jbd2_", "ext4_", "xfs_", "xlog_", "btrfs_", "zio_", "txg_", "dio_", "iomap_dio", "__iomap_dio", "wait_log_commit"),
    ),
    # sockets, and file systems whose data is on another machine or in another process
    "network": (
        *("sk_wait", "sk_stream", "__skb_wait", "skb_wait", "wait_for_packet", "inet_", "tcp_", "udp_", "unix_", "vsock_", "virtio_vsock"),
        *("nfs", "rpc_", "__rpc_", "fuse", "request_wait_answer", "ceph_", "cifs_", "smb", "p9_", "v9fs_", "netfs_", "afs_"),
        *("ptlrpc_", "ll_", "osc_", "cl_sync_io", "cxiWait", "beegfs_", "FhgfsOps_"),
    ),
}  # fmt: skip
_WORDS = {beginning: word for word, beginnings in _WAITS.items() for beginning in beginnings}
_LENGTHS = sorted({len(beginning) for beginning in _WORDS}, reverse=True)
RUNNING, BLOCKED = "R", "D"


def thread_state(state: str, wchan: str) -> str | None:
    """Return the word of the catalog's `thread_state`; None for a thread that has ended.

    `wchan` is 0 or empty for a thread that runs, and where the kernel does not show it: to other users, in some containers.
    """
    if state == RUNNING:
        return "running"
    if state in ("T", "t"):
        return "stopped"
    if state in ("S", "D", "I"):
        known = (word for length in _LENGTHS if (word := _WORDS.get(wchan[:length])) is not None)
        return next(known, "disk" if state == BLOCKED else "waiting")
    return None
