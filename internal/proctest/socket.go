package proctest

import (
	"os"
	"testing"
)

// SocketDir returns a directory for unix sockets that is removed with the test. The path of a
// socket has at most 107 bytes, and that of [testing.T.TempDir] contains the name of the test.
func SocketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
