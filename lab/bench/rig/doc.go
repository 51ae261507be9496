// Package rig has what the benches with real services share: processes in
// cgroups that end with the bench, connections that are used again, and what
// /proc says of the machine.
package rig
