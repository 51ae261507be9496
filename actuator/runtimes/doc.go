// Package runtimes tells a program about a new memory limit of its control group, where the program
// keeps memory by a limit of its own: a JVM, a Go service, Redis or PostgreSQL.
//
//	a fall:  programs set to the new limit → memory in use + margin ≤ new limit → limit of the group
//	a rise:  limit of the group → programs set to the new limit
//
// A fall waits for the memory, at most [actuator.Runtime].Wait. If it does not come back, or a program
// does not answer, answers nonsense, or is another process than before, the programs get their former
// settings, the limit stays, and the error says why. No program is ever set above what it had before
// trimtab changed it.
//
//	room for programs = limit / (1 + 1/8) − memory in use by others in the group
//
// The margin of an eighth is that of [cgroup.Memory]. The settings of before are in the journal, in
// what [Memory.Undo] returns, before a program is changed. They come back with the limit.
//
// The knob reads a program's files only inside the root directory of its process, without following
// links out of it. It talks to a Unix socket only if the socket belongs to the user of the process
// and the process at its other end is in the group.
//
// A program that starts while the limit is lowered is told at the next change of the limit. Node.js
// has no setting that can be changed while it runs.
//
// Source: OpenJDK 17, src/jdk.attach/linux/native/libattach and src/hotspot/share/services/
// attachListener.cpp (the attach protocol); Go, runtime/debug.SetMemoryLimit; Redis, CONFIG SET and
// INFO memory; PostgreSQL 15, ALTER SYSTEM and section 20.4.1 (memory).
package runtimes
