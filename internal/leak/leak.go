// Package leak tells tests which goroutines are left when all should have ended.
//
// On a busy machine goroutines take a while to end, so it waits for up to a minute;
// go.uber.org/goleak, which finds them, waits for only half a second.
package leak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience limits the wait; typical waits are milliseconds.
const patience = time.Minute

// Main runs the tests of a package and fails it if goroutines are left.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := find(patience); err != nil {
			fmt.Fprintln(os.Stderr, "the tests left goroutines:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// None fails the test if goroutines are left, except those that the options exclude.
func None(t testing.TB, options ...goleak.Option) {
	t.Helper()
	if err := find(patience, options...); err != nil {
		t.Error(err)
	}
}

// find returns nil as soon as no goroutine is left, else the leak when patience ends.
func find(patience time.Duration, options ...goleak.Option) error {
	for limit := time.Now().Add(patience); ; {
		if err := goleak.Find(options...); err == nil || time.Now().After(limit) {
			return err
		}
	}
}
