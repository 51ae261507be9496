package cgroup

import (
	"syscall"
	"testing"
)

// The test of package freezer has threaded groups of a kernel of version 2; this one needs none.
func TestOnlyAThreadedGroupInsideIsPassedOver(t *testing.T) {
	if !listsNone(syscall.EOPNOTSUPP) || !listsNone(syscall.ENODEV) || listsNone(syscall.EIO) || listsNone(nil) {
		t.Error("want groups that are gone or threaded passed over, and no others")
	}
}
