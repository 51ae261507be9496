//go:build !profile

package main

import "runtime"

// withProfile switches off in a build without the tag profile what would keep the callers
// of a sample of all allocations, which nobody can ask for: 3 MiB of a small process, half of
// them pages of the tables by which callers are found.
func withProfile() { runtime.MemProfileRate = 0 }
