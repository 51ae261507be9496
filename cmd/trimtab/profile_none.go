//go:build !profile

package main

import "runtime"

// withProfile switches off memory profiling in a build without the tag profile, as nobody can
// read it there: that saves a small process 3 MiB.
func withProfile() { runtime.MemProfileRate = 0 }
