// Package cpuset sets the physical cores of one control group. A core is in the set with
// all of its hardware threads, or not at all.
//
//	cores = number of physical cores of which cpuset.cpus has a thread
//
// In version 2 an empty cpuset.cpus means the CPUs of the parent, and reads as unlimited.
// The kernel refuses to empty it again while a process is in the group; a restore then
// writes all possible CPUs, which has the same effect. In version 1 nothing can run in an
// empty set; it reads as 0 and is left alone. If a parent was made smaller, fewer CPUs are
// in force (cpuset.cpus.effective) than were asked for.
//
// [Choose] selects the cores from files alone, so the same files give the same set. A
// group that gets fewer cores keeps its lowest-numbered ones; a group that gets more takes
// the lowest free ones. With High, for best-effort jobs, both count from the highest. A
// core is free if no other group beneath the root has it. Groups that do not count: those
// with all CPUs of the root, those inside this group, its parents, and those of
// speculative tasks ([Guests]). So groups with knobs are on different physical cores. If
// too few cores are free, a raise is refused with trimtab.ErrRefused and the names of the
// groups; a fall is never refused, and shares no core that was not shared before. After a
// write the other groups are read once more: if another process took the same cores
// meanwhile, this group returns to what it had.
//
// The number of cores does not tell which they are, so the knob has [actuator.Traits].Restore
// whose Undo has the former mask.
//
// Sources: Linux, cgroup-v1/cpusets.rst; cgroup-v2.rst, "Cpuset Interface Files";
// cputopology.rst, core_cpus_list.
package cpuset
