//go:build !profile

package main

// withProfile does nothing in a build without the tag profile.
func withProfile() {}
