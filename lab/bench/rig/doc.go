// Package rig has what the benches share that run real programs: processes in cgroups
// that end with the bench, nginx, Redis, PostgreSQL and trimtab as such processes, connections
// that are used again, spans as a service sends them, and what /proc says of the machine and of
// a process. It measures and judges nothing by itself.
package rig
