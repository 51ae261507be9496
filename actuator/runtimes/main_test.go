package runtimes

import (
	"fmt"
	"os"
	"testing"

	"github.com/trimtab/trimtab/memlimit"
)

// TestMain is also the Go program that tests set the limit of: this test binary, started again.
func TestMain(m *testing.M) {
	if socket := os.Getenv("TRIMTAB_TEST_MEMLIMIT"); socket != "" {
		fmt.Fprintln(os.Stderr, memlimit.ListenAndServe(socket))
		os.Exit(1)
	}
	os.Exit(m.Run())
}
