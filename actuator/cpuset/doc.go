// Package cpuset turns the physical cores of one control group: a core with all its
// hardware threads is in the set or none of it is.
//
//	cores = number of physical cores of which cpuset.cpus has a thread
//
// Version 2's empty cpuset.cpus, which gives what the parent has, reads as unlimited. No
// kernel lets it be emptied again while a process lives in the group: a restore then
// sets all CPUs that there can be, which gives what the parent has, too. Version 1's
// empty set, in which nothing may run, is 0 and is left alone. What is in force may be
// less than was asked for (cpuset.cpus.effective), where a parent was made smaller.
//
// Which cores, [Choose] decides from what can be read, so that the same files give the
// same set. A group that gets fewer keeps its lowest-numbered ones, one that gets more
// takes the lowest that are free; a High one, for best-effort jobs, does so from the
// other end. A core is free when no other group beneath the root has it: one that has
// less than the root, and neither lies inside this group nor holds it, nor is one of
// speculative tasks ([Guests]). So groups with
// knobs are on different physical cores. Where not enough are free, more is refused with
// trimtab.ErrRefused and the groups named; less never is, and then shares no core that
// was not shared before. After a write the other groups are read once more: where another
// process took the same cores meanwhile, this group goes back to what it had.
//
// A set is more than its size: the knob is an [actuator.Restorer], whose Undo has the
// mask that was there.
//
// Sources: Linux, cgroup-v1/cpusets.rst; cgroup-v2.rst, "Cpuset Interface Files";
// cputopology.rst, core_cpus_list.
package cpuset
