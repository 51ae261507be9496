// Package hostfs touches the files of the host, and only those it was told to.
//
// [Root] opens files beneath one declared directory: no "..", absolute path,
// symbolic link or mount leads out of it. A write is one write(2) to a file
// that exists; nothing is created or cut on the way, because a kernel file
// takes a value whole or not at all.
//
// [Journal] keeps small keyed records that must outlive a SIGKILL, a cut file,
// flipped bits and a full disk. It holds two copies of everything,
//
//	state(key) = the readable record with the highest number, over both copies
//
// so that no single damage loses a record.
//
// [BootTime] and [BootID] are the clock that leases count on, and [Quota] is
// the kernel's form of a CPU limit, which a knob writes and a collector reads.
//
// The package decides nothing: what to write and when is its caller's.
//
//	root, err := hostfs.OpenRoot("/sys/fs/cgroup/cpu")
//	…
//	err = root.Write("shop/cpu.cfs_quota_us", "150000")
package hostfs
